-- ── Webhooks ──────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE webhooks (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  url text NOT NULL,
  -- Names, or beginnings that end in *; empty means all.
  event_types text[] NOT NULL,
  state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused')),
  -- It gets the events after this position.
  since_position bigint NOT NULL,
  -- Since when no attempt has succeeded.
  failing_since timestamptz,
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);
CREATE INDEX webhooks_by_project ON webhooks (project_id, id DESC);

-- Kept readable, since every delivery is signed with it. A replaced one signs beside its successor until it expires.
CREATE TABLE webhook_secrets (
  webhook_id uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
  secret text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  expires_at timestamptz,
  PRIMARY KEY (webhook_id, secret)
);
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (webhook_id) WHERE expires_at IS NULL;

CREATE TABLE webhook_deliveries (
  id uuid PRIMARY KEY,
  -- The order of the events; one resource's go out one after the other.
  seq bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  webhook_id uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
  event_id uuid NOT NULL REFERENCES events (id) ON DELETE CASCADE,
  event_type text NOT NULL,
  resource_id text NOT NULL,
  -- Asked for by somebody (a test, a replay): outside the order.
  is_direct boolean NOT NULL DEFAULT false,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts integer NOT NULL DEFAULT 0,
  response_status integer NOT NULL DEFAULT 0,
  error text NOT NULL DEFAULT '',
  -- Null when it is over, and while the webhook is paused.
  next_attempt_at timestamptz,
  lease_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  completed_at timestamptz,
  CHECK ((state = 'pending') = (completed_at IS NULL))
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_attempt_at) WHERE state = 'pending' AND next_attempt_at IS NOT NULL;
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook_id, resource_id, seq) WHERE state = 'pending' AND NOT is_direct;
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, seq DESC);
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (event_id);
CREATE UNIQUE INDEX webhook_deliveries_once ON webhook_deliveries (webhook_id, event_id) WHERE NOT is_direct;

-- Events up to here have their deliveries.
CREATE TABLE webhook_cursor (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  position bigint NOT NULL DEFAULT 0
);
INSERT INTO webhook_cursor DEFAULT VALUES;
