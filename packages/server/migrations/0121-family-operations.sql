-- Operations that only clients of the compatible API see: refusals that they expect as a failed operation, changes that are
-- done at once, and creations of several VMs. Kept for a day, and only the newest ones of each project.
CREATE TABLE family_operations (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects (id),
  -- SHA-256 of the signing key, the signature and the body of the request, so that a repeated request gets the
  -- same operation.
  request_hash bytea NOT NULL,
  -- The operation as clients see it. If it has parts, its state is that of the parts.
  operation json NOT NULL,
  -- The operations that create its VMs.
  parts uuid[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (project_id, request_hash)
);
CREATE INDEX family_operations_newest ON family_operations (project_id, id DESC);
CREATE INDEX family_operations_by_age ON family_operations (created_at);
