CREATE TABLE quota_requests (
  id uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations,
  name text NOT NULL,
  max bigint NOT NULL CHECK (max > 0),
  reason text NOT NULL,
  state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'approved', 'rejected')),
  requested_by text NOT NULL,
  note text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  decided_at timestamptz,
  CHECK ((state = 'open') = (decided_at IS NULL))
);
COMMENT ON TABLE quota_requests IS 'Requests of organizations for higher quotas, which operators approve or reject.';
CREATE INDEX quota_requests_by_organization ON quota_requests (organization_id, id DESC);
-- A quota has at most one open request, so that an organization cannot flood the operators.
CREATE UNIQUE INDEX quota_requests_open ON quota_requests (organization_id, name) WHERE decided_at IS NULL;
CREATE INDEX quota_requests_by_age ON quota_requests (decided_at) WHERE decided_at IS NOT NULL;

-- Addresses that also get the alerts that are sent to owners and admins by e-mail.
ALTER TABLE organizations ADD COLUMN alert_emails text[] NOT NULL DEFAULT '{}';

-- Null until the user signs in after this migration.
ALTER TABLE users ADD COLUMN last_sign_in_at timestamptz;
