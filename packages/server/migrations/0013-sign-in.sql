-- ── Sessions, resets, second factors ──────────────────────────────────────────────────────────────────────────────

ALTER TABLE token_families
  -- Where the session was last used, for its owner to recognise it.
  ADD COLUMN client_address text NOT NULL DEFAULT '',
  ADD COLUMN user_agent text NOT NULL DEFAULT '',
  ADD COLUMN last_used_at timestamptz NOT NULL DEFAULT slipway_now(),
  -- Whoever began it, or holds it now, has shown a second factor.
  ADD COLUMN has_second_factor boolean NOT NULL DEFAULT false;
UPDATE token_families SET last_used_at = created_at;

ALTER TABLE one_time_codes
  -- Sent by mail and shown to nobody: redeeming it proves the address.
  ADD COLUMN is_mailed boolean NOT NULL DEFAULT false,
  ADD COLUMN created_at timestamptz NOT NULL DEFAULT slipway_now(),
  DROP CONSTRAINT one_time_codes_purpose_check,
  DROP CONSTRAINT one_time_codes_check;
ALTER TABLE one_time_codes
  ADD CONSTRAINT one_time_codes_purpose CHECK (purpose IN ('setup', 'invite', 'reset')),
  ADD CONSTRAINT one_time_codes_user CHECK ((purpose = 'setup') = (user_id IS NULL));

ALTER TABLE users
  -- The shared secret, encrypted under the master key; it counts from its confirmation on.
  ADD COLUMN totp_sealed bytea,
  ADD COLUMN totp_confirmed_at timestamptz,
  -- The time step of the last code that was accepted: a code works once.
  ADD COLUMN totp_last_step bigint NOT NULL DEFAULT 0,
  ADD COLUMN email_verified_at timestamptz;

-- Each stands in for the second factor once. They are random and long, so that a plain hash is enough.
CREATE TABLE recovery_codes (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  code_hash bytea NOT NULL,
  used_at timestamptz,
  PRIMARY KEY (user_id, code_hash)
);

ALTER TABLE organizations ADD COLUMN require_totp boolean NOT NULL DEFAULT false;
