-- What is to be done, apart from the record of what was: one narrow row for each unfinished operation. A creation writes it
-- once and deletes it once, and however long the history is, a claim looks at what is unfinished alone. Servers of the
-- version before claim from the record and find that its columns are gone.
CREATE TABLE operation_queue (
  operation_id uuid PRIMARY KEY,
  project_id uuid NOT NULL,
  resource_id uuid NOT NULL,
  is_deletion boolean NOT NULL,
  -- Where it is done; '' anywhere.
  location text NOT NULL,
  -- When it is due; of what a worker holds, when its lease runs out.
  run_at timestamptz NOT NULL DEFAULT slipway_now(),
  -- What its worker proves the lease by; null while nobody holds it.
  lease_token uuid,
  is_cancelled boolean NOT NULL DEFAULT false
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);
COMMENT ON TABLE operation_queue IS 'Unfinished operations. An outcome is written only with the row locked and its token standing; the row goes as the operation ends.';

INSERT INTO operation_queue (operation_id, project_id, resource_id, is_deletion, location, run_at, lease_token, is_cancelled)
SELECT id, project_id, resource_id, name = 'DELETE', location, run_at, lease_token, is_cancelled
FROM operations WHERE state = 'IN_PROGRESS';

-- The claim (operation_claim).
CREATE INDEX operation_queue_due ON operation_queue (run_at);
-- The claim beside projects that have their share (operation_claim_beside), and what a project has under way.
CREATE INDEX operation_queue_of_project ON operation_queue (project_id, run_at);
-- At most one unfinished deletion and one other unfinished operation on a resource; and whether there is any.
CREATE UNIQUE INDEX operation_queue_of_resource ON operation_queue (resource_id, is_deletion);

DROP INDEX operations_due, operations_due_by_project, operations_one_deletion, operations_one_other;
ALTER TABLE operations
  DROP COLUMN run_at, DROP COLUMN lease_token, DROP COLUMN lease_until, DROP COLUMN deadline_at, DROP COLUMN is_cancelled;
