-- ── Readiness ─────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE readiness (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  checked_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE readiness IS
  'One row, which a readiness check writes: a database that answers reads may still refuse writes.';
INSERT INTO readiness DEFAULT VALUES;
