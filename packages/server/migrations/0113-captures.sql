CREATE TABLE captures (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  kind text NOT NULL CHECK (kind IN ('image', 'snapshot')),
  name text NOT NULL,
  labels jsonb NOT NULL DEFAULT '{}',
  description text NOT NULL DEFAULT '',
  -- While this is set, the deletion is refused.
  is_protected boolean NOT NULL DEFAULT false,
  -- Words that describe an image.
  tags text[] NOT NULL DEFAULT '{}',
  -- The VM, disk or snapshot that was copied; it may be deleted since.
  source_kind text NOT NULL CHECK (source_kind IN ('vm', 'disk', 'snapshot')),
  source_id uuid NOT NULL,
  -- The VM that can write to the source while it is copied: it is neither started nor stopped meanwhile.
  vm_id uuid,
  size text NOT NULL,
  size_gib bigint NOT NULL CHECK (size_gib > 0),
  block_size integer NOT NULL CHECK (block_size IN (0, 512, 4096)),
  location text NOT NULL REFERENCES locations,
  -- Where storage is local, the host that has it.
  host_id uuid REFERENCES hosts,
  state text NOT NULL CHECK (state IN ('creating', 'available', 'deleting')),
  -- What the engine reports when the copy is complete.
  stored_bytes bigint CHECK (stored_bytes >= 0),
  consistency text CHECK (consistency IN ('off', 'frozen', 'crash')),
  engine_source jsonb,
  generation bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  updated_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (project_id, kind, name),
  CHECK (state <> 'available' OR num_nulls(stored_bytes, consistency, engine_source) = 0)
);
COMMENT ON TABLE captures IS 'Copies of disks: custom images, from which VMs are created, and snapshots, from which disks are.';
CREATE INDEX captures_by_project ON captures (project_id, kind, id DESC);
CREATE INDEX captures_by_host ON captures (host_id) WHERE host_id IS NOT NULL;
CREATE INDEX captures_by_source ON captures (source_id);
CREATE UNIQUE INDEX captures_one_of_source ON captures (source_id) WHERE state = 'creating';
CREATE INDEX captures_with_vm ON captures (vm_id) WHERE state = 'creating' AND vm_id IS NOT NULL;

-- The custom image that a VM was created from, also after that image was deleted.
ALTER TABLE vms ADD COLUMN custom_image_id uuid;
CREATE INDEX vms_by_custom_image ON vms (custom_image_id) WHERE custom_image_id IS NOT NULL;
-- The snapshot whose content a disk got, also after that snapshot was deleted.
ALTER TABLE disks ADD COLUMN snapshot_id uuid;
CREATE INDEX disks_from_snapshot ON disks (snapshot_id) WHERE snapshot_id IS NOT NULL;

ALTER TABLE operations DROP CONSTRAINT operations_resource_type_check,
  ADD CONSTRAINT operations_resource_type_check
    CHECK (resource_type IN ('vm', 'disk', 'firewall_rule', 'instance_group', 'custom_image', 'snapshot'));

ALTER TABLE usage_intervals DROP CONSTRAINT usage_intervals_resource_type_check,
  ADD CONSTRAINT usage_intervals_resource_type_check
    CHECK (resource_type IN ('vm', 'disk', 'reservation', 'custom_image', 'snapshot', 'address'));
ALTER TABLE usage_days DROP CONSTRAINT usage_days_resource_type_check,
  ADD CONSTRAINT usage_days_resource_type_check
    CHECK (resource_type IN ('vm', 'disk', 'reservation', 'custom_image', 'snapshot', 'address'));
ALTER TABLE usage_resource_days DROP CONSTRAINT usage_resource_days_resource_type_check,
  ADD CONSTRAINT usage_resource_days_resource_type_check
    CHECK (resource_type IN ('vm', 'disk', 'reservation', 'custom_image', 'snapshot', 'address'));

-- The copies of the simulated engine. The row of a removed one stays, so that a late call is rejected.
CREATE TABLE simulated_captures (
  id uuid PRIMARY KEY,
  location text NOT NULL,
  generation bigint NOT NULL,
  stored_bytes bigint NOT NULL,
  consistency text NOT NULL,
  is_removed boolean NOT NULL DEFAULT false
);
CREATE INDEX simulated_captures_by_location ON simulated_captures (location) WHERE NOT is_removed;
-- A row means that the guests of the simulated engine have a guest agent.
CREATE TABLE simulated_guest_agent (is_present boolean PRIMARY KEY CHECK (is_present));
