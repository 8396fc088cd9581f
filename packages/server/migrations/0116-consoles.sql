CREATE TABLE console_tickets (
  -- The digest of the secret in the URL.
  hash bytea PRIMARY KEY,
  session_id uuid NOT NULL,
  project_id uuid NOT NULL REFERENCES projects ON DELETE CASCADE,
  vm_id uuid NOT NULL,
  mode text NOT NULL CHECK (mode IN ('read', 'write')),
  -- Takes over from a session that writes.
  is_forced boolean NOT NULL,
  -- The digest of the credential that asked for the ticket, and its kind. The session ends with its rights.
  bearer_digest text NOT NULL,
  is_key boolean NOT NULL,
  expires_at timestamptz NOT NULL
);
COMMENT ON TABLE console_tickets IS 'URLs of serial consoles that were not opened yet. Each works once.';
CREATE INDEX console_tickets_by_age ON console_tickets (expires_at);

CREATE TABLE console_sessions (
  vm_id uuid PRIMARY KEY REFERENCES vms ON DELETE CASCADE,
  session_id uuid NOT NULL,
  -- Shown to a caller who wants to write too.
  holder text NOT NULL,
  -- Renewed by the process that has the session.
  lease_until timestamptz NOT NULL
);
COMMENT ON TABLE console_sessions IS 'The session that may write to the serial console of a VM.';
