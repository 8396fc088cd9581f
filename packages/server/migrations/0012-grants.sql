-- ── Invitations ───────────────────────────────────────────────────────────────────────────────────────────────────

-- A membership or an operator's mark that nobody has redeemed yet. It belongs to whoever redeems its own code, and to no
-- account before: whoever registered the address first gains nothing. Rows that one link grants share its code.
CREATE TABLE invitations (
  -- Shown as the member's id until an account takes it.
  id uuid PRIMARY KEY,
  email text NOT NULL CHECK (email = lower(email)),
  organization_id uuid REFERENCES organizations,
  role text CHECK (role IN ('viewer', 'member', 'admin', 'owner')),
  is_operator boolean NOT NULL DEFAULT false,
  code_hash bytea NOT NULL,
  -- For the invited to see: an e-mail address or the name of a key.
  invited_by text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  expires_at timestamptz NOT NULL,
  CHECK ((organization_id IS NULL) = (role IS NULL)),
  CHECK (organization_id IS NULL OR NOT is_operator)
);
CREATE UNIQUE INDEX invitations_grant
  ON invitations (coalesce(organization_id, '00000000-0000-0000-0000-000000000000'), email, is_operator);
CREATE INDEX invitations_by_organization ON invitations (organization_id);
CREATE INDEX invitations_by_code ON invitations (code_hash);

-- Users who never accepted become invitations. The link that is on its way opens only what it was made for: the
-- operator's mark, else the first membership. The others need a link of their own.
CREATE TEMPORARY TABLE invited ON COMMIT DROP AS
  SELECT u.id, u.email, u.is_operator, c.code_hash, c.expires_at
  FROM users u
  LEFT JOIN LATERAL (SELECT code_hash, expires_at FROM one_time_codes
                     WHERE user_id = u.id AND used_at IS NULL ORDER BY expires_at DESC LIMIT 1) c ON true
  WHERE u.password_hash IS NULL AND u.suspended_at IS NULL;
INSERT INTO invitations (id, email, organization_id, role, code_hash, created_at, expires_at)
  SELECT gen_random_uuid(), i.email, m.organization_id, m.role,
         CASE WHEN m.is_first AND i.code_hash IS NOT NULL THEN i.code_hash ELSE sha256(gen_random_uuid()::text::bytea) END,
         m.created_at,
         CASE WHEN m.is_first AND i.code_hash IS NOT NULL THEN i.expires_at ELSE slipway_now() END
  FROM invited i
  JOIN (SELECT m.*, NOT u.is_operator
               AND row_number() OVER (PARTITION BY m.user_id ORDER BY m.created_at, m.organization_id) = 1 AS is_first
        FROM memberships m JOIN users u ON u.id = m.user_id) m ON m.user_id = i.id;
INSERT INTO invitations (id, email, is_operator, code_hash, expires_at)
  SELECT gen_random_uuid(), email, is_operator, coalesce(code_hash, sha256(gen_random_uuid()::text::bytea)),
         coalesce(expires_at, slipway_now())
  FROM invited i
  WHERE is_operator OR NOT EXISTS (SELECT FROM memberships m WHERE m.user_id = i.id);
DELETE FROM one_time_codes WHERE purpose = 'invite';
DELETE FROM memberships WHERE user_id IN (SELECT id FROM users WHERE password_hash IS NULL);
DELETE FROM users WHERE password_hash IS NULL;

CREATE INDEX users_operators ON users (id) WHERE is_operator;

-- ── Keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────

ALTER TABLE access_keys
  ADD COLUMN organization_id uuid REFERENCES organizations,
  -- The user who made it, or whose key did; null where nobody is known.
  ADD COLUMN created_by uuid REFERENCES users,
  -- From elsewhere the key does not work; empty: it works from anywhere.
  ADD COLUMN allowed_cidrs text[] NOT NULL DEFAULT '{}',
  DROP CONSTRAINT access_keys_kind_check,
  DROP CONSTRAINT access_keys_role_check,
  DROP CONSTRAINT access_keys_check;
ALTER TABLE access_keys
  ADD CONSTRAINT access_keys_scope CHECK (CASE kind
    WHEN 'project' THEN project_id IS NOT NULL AND organization_id IS NULL AND role IN ('read', 'write')
    WHEN 'organization' THEN project_id IS NULL AND organization_id IS NOT NULL
                             AND role IN ('viewer', 'member', 'admin', 'owner')
    WHEN 'operator' THEN project_id IS NULL AND organization_id IS NULL AND role = 'write'
    ELSE false END);
CREATE INDEX access_keys_by_organization ON access_keys (organization_id, id DESC) WHERE kind = 'organization' AND revoked_at IS NULL;
CREATE INDEX access_keys_of_operators ON access_keys (id DESC) WHERE kind = 'operator' AND revoked_at IS NULL;
CREATE INDEX access_keys_by_creator ON access_keys (created_by) WHERE revoked_at IS NULL;
UPDATE access_keys k SET created_by = u.id
  FROM events e JOIN users u ON e.actor = 'user:' || u.id
  WHERE e.type = 'access_key.created' AND e.resource_type = 'access_key' AND e.resource_id = k.id::text;

-- ── What was granted without a link ───────────────────────────────────────────────────────────────────────────────

-- The next start lists these once, for an operator to look at: they stay valid, but nobody proved to be whom they name.
CREATE TABLE grants_to_review (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  description text NOT NULL
);
INSERT INTO grants_to_review (description)
  SELECT format('%s is an operator', u.email) FROM users u
  WHERE u.is_operator AND NOT EXISTS (
    SELECT FROM events e WHERE e.type = 'user.setup' AND e.resource_id = u.id::text)
  ORDER BY u.id;
INSERT INTO grants_to_review (description)
  SELECT format('%s is %s of the organization %s (%s)', u.email, m.role, o.name, o.id)
  FROM memberships m JOIN users u ON u.id = m.user_id JOIN organizations o ON o.id = m.organization_id
  WHERE u.email <> 'demo@slipway.local' AND NOT EXISTS (
    SELECT FROM events e WHERE e.type = 'member.accepted' AND e.resource_id = u.id::text AND e.organization_id = o.id)
  ORDER BY o.id, u.id;
INSERT INTO grants_to_review (description)
  SELECT format('the operator key %s (%s)', name, prefix) FROM access_keys
  WHERE kind = 'operator' AND revoked_at IS NULL AND name <> 'demo-operator' ORDER BY id;

-- ── Suspension ────────────────────────────────────────────────────────────────────────────────────────────────────

-- While the organization is suspended, whatever of it runs is stopped.
ALTER TABLE organizations ADD COLUMN stops_vms boolean NOT NULL DEFAULT false;
CREATE INDEX organizations_stopping ON organizations (id) WHERE stops_vms;
