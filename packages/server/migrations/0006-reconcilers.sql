-- A periodic task that one process does for all. Whoever holds the row is at it, or has done it and lets others rest
-- until then.
CREATE TABLE leases (
  name text PRIMARY KEY,
  holder uuid NOT NULL,
  until timestamptz NOT NULL
);
COMMENT ON TABLE leases IS 'Periodic tasks that processes take in turn: at most one holder of a name at a time.';
COMMENT ON COLUMN leases.until IS 'By slipway_now(). Past it anyone may take the task: its holder died, or the next turn is due.';

ALTER TABLE vms ADD COLUMN os_disk_lost_at timestamptz;
COMMENT ON COLUMN vms.os_disk_lost_at IS 'Since when its host has no OS disk of it. It is neither billed nor started until the disk shows again.';

ALTER TABLE hosts ADD COLUMN forgotten_at timestamptz;
COMMENT ON COLUMN hosts.forgotten_at IS 'Declared lost for good by an operator: its reports are refused until it is registered anew.';

ALTER TABLE locations ADD COLUMN engine_answered_at timestamptz;
COMMENT ON COLUMN locations.engine_answered_at IS 'When a worker last read the inventory of its engine to the end.';

-- VMs on lost hosts are looked for all the time; few hosts are down.
CREATE INDEX hosts_down ON hosts (id) WHERE state = 'down';
-- What a host takes with it when it is forgotten.
CREATE INDEX disks_by_host ON disks (host_id) WHERE host_id IS NOT NULL;
CREATE INDEX simulated_vms_by_removal ON simulated_vms (removed_at) WHERE is_removed;

-- A VM that was deleted while its host was away holds its GPUs no more: they wait for the host to prove them clean.
UPDATE gpus g SET state = 'quarantined', vm_id = NULL, quarantined_at = slipway_now()
FROM vms v WHERE v.id = g.vm_id AND v.deleted_at IS NOT NULL AND g.state = 'claimed';
