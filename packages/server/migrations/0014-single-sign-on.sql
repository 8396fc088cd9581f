-- ── Single sign-on ────────────────────────────────────────────────────────────────────────────────────────────────

-- An account is bound by issuer and subject and never by its address: that is unique among password accounts only.
-- (Servers of the version before cannot make users while this one's schema is in place; everything else of theirs works.)
ALTER TABLE users DROP CONSTRAINT users_email_key;
CREATE UNIQUE INDEX users_password_email ON users (email) WHERE password_hash IS NOT NULL;
CREATE INDEX users_by_email ON users (email);

CREATE TABLE user_identities (
  issuer text NOT NULL,
  subject text NOT NULL,
  user_id uuid NOT NULL REFERENCES users,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX user_identities_by_user ON user_identities (user_id);

CREATE INDEX organizations_by_name ON organizations (name);

-- Given by a claim of this issuer, and taken back with it; null for one that a link gave.
ALTER TABLE memberships ADD COLUMN oidc_issuer text;

-- ── Mail ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Written with the change that it tells of, sent by a worker, deleted when it is sent or given up. The text may hold a
-- code: it is encrypted under the master key.
CREATE TABLE mails (
  id uuid PRIMARY KEY,
  recipient text NOT NULL,
  sealed bytea NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  next_attempt_at timestamptz NOT NULL DEFAULT slipway_now(),
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);
CREATE INDEX mails_due ON mails (next_attempt_at);

-- Events up to here have their notices; null until mail is configured, since nobody wants those of the past.
CREATE TABLE mail_cursor (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  position bigint
);
INSERT INTO mail_cursor DEFAULT VALUES;
