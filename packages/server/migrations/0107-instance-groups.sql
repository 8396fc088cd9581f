CREATE TABLE instance_groups (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  name text NOT NULL,
  labels jsonb NOT NULL DEFAULT '{}',
  description text NOT NULL DEFAULT '',
  -- While this is set, the deletion of the group is refused.
  is_protected boolean NOT NULL DEFAULT false,
  -- The template version and the members of a creation from which new members are made.
  template_id uuid,
  vm json NOT NULL DEFAULT '{}',
  location text NOT NULL REFERENCES locations,
  desired_count integer NOT NULL CHECK (desired_count BETWEEN 0 AND 64),
  placement_policy text NOT NULL CHECK (placement_policy IN ('unspecified', 'spread', 'pack')),
  on_member_loss text NOT NULL CHECK (on_member_loss IN ('none', 'replace')),
  state text NOT NULL CHECK (state IN ('HEALTHY', 'UPDATING', 'UNHEALTHY', 'DELETING')),
  -- Raised whenever members are added, removed or replaced.
  generation bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  updated_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (project_id, name)
);
COMMENT ON TABLE instance_groups IS 'Groups of VMs that are created all or none and run from one moment on.';
CREATE INDEX instance_groups_by_project ON instance_groups (project_id, id DESC);
-- Groups whose lost members are replaced: few of all groups.
CREATE INDEX instance_groups_to_repair ON instance_groups (updated_at)
  WHERE on_member_loss = 'replace' AND state = 'UNHEALTHY';

ALTER TABLE vms
  ADD FOREIGN KEY (group_id) REFERENCES instance_groups,
  -- The number of the member in its name; a deleted VM whose host is down does not keep it.
  ADD COLUMN group_number integer,
  -- A new member has responded and waits for the others: since when, and where SSH reaches it once it runs.
  ADD COLUMN booted_at timestamptz,
  ADD COLUMN booted_ssh_destination text NOT NULL DEFAULT '',
  ADD CHECK ((group_id IS NULL) = (group_number IS NULL));
CREATE INDEX vms_by_group ON vms (group_id) WHERE group_id IS NOT NULL;
CREATE UNIQUE INDEX vms_group_number ON vms (group_id, group_number) WHERE deleted_at IS NULL AND group_id IS NOT NULL;

-- The group with whose members a disk was created.
ALTER TABLE disks ADD COLUMN group_id uuid;
CREATE INDEX disks_by_group ON disks (group_id) WHERE group_id IS NOT NULL;

CREATE TABLE group_boot_failures (
  group_id uuid NOT NULL REFERENCES instance_groups ON DELETE CASCADE,
  number integer NOT NULL,
  -- The host on which the member did not boot: its second attempt is on another one.
  host_id uuid,
  code text NOT NULL,
  message text NOT NULL,
  failed_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE group_boot_failures IS
  'Members that did not boot in the current operation of their group. Each is placed anew once.';
CREATE INDEX group_boot_failures_of_group ON group_boot_failures (group_id);

ALTER TABLE operations DROP CONSTRAINT operations_resource_type_check,
  ADD CONSTRAINT operations_resource_type_check
    CHECK (resource_type IN ('vm', 'disk', 'firewall_rule', 'instance_group'));

-- Creations of groups that failed within a day: only the first of them are free of charge.
CREATE INDEX operations_failed_groups ON operations (project_id, completed_at)
  WHERE state = 'FAILED' AND resource_type = 'instance_group';
