-- Announced maintenance of a host, and a note of the operators. `maintenance_notices` counts the notices that the tenants
-- got (7 days, 24 hours and 1 hour ahead), so that each is sent once.
ALTER TABLE hosts
  ADD COLUMN note text NOT NULL DEFAULT '',
  ADD COLUMN maintenance_at timestamptz,
  ADD COLUMN maintenance_note text NOT NULL DEFAULT '',
  ADD COLUMN maintenance_announced_at timestamptz,
  ADD COLUMN maintenance_notices integer NOT NULL DEFAULT 0;

-- Few hosts have a maintenance at a time: due notices are found without reading the others.
CREATE INDEX hosts_in_maintenance ON hosts (maintenance_at) WHERE maintenance_at IS NOT NULL;

-- Creations of VMs that failed within a day are alerts of the project.
CREATE INDEX operations_failed_creations ON operations (project_id, completed_at)
  WHERE state = 'FAILED' AND name = 'CREATE' AND resource_type = 'vm';
