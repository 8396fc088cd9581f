-- ── Limits of sign-in ─────────────────────────────────────────────────────────────────────────────────────────────

-- An attempt that was counted ahead and turned out to be right is taken back by its id.
ALTER TABLE password_failures ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY;
COMMENT ON COLUMN password_failures.email IS 'empty where a code was tried and no e-mail was named';
COMMENT ON COLUMN password_failures.address IS 'the client: an IPv4 address, or a /64 of IPv6';
CREATE INDEX password_failures_by_address ON password_failures (address, failed_at);

-- From where a user has signed in: the limit of an e-mail does not hold there, so that nobody is locked out by others.
CREATE TABLE known_addresses (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  address text NOT NULL,
  signed_in_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (user_id, address)
);
CREATE INDEX known_addresses_by_age ON known_addresses (signed_in_at);

-- Sessions keep addresses of IPv6 as they are, and not as a /64: those become known with the next sign-in.
INSERT INTO known_addresses (user_id, address, signed_in_at)
  SELECT user_id, client_address, max(last_used_at) FROM token_families
  WHERE client_address <> '' AND client_address NOT LIKE '%:%' GROUP BY user_id, client_address;
