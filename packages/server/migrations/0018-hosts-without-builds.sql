-- Hosts that fit equally well are tried in the order of their ids: how many VMs each of them builds was a tie-break that
-- cost two updates of the host's row, and of three indexes, for every VM.
DROP TRIGGER vms_building_inserted ON vms;
DROP TRIGGER vms_building_updated ON vms;
DROP FUNCTION count_host_building();

DROP INDEX hosts_open, hosts_open_node_2, hosts_open_node_4;
ALTER TABLE hosts DROP COLUMN vms_building;
-- The placement predicate (host_lock_*, host_fits_*, availability_list): the fullest host that still fits, then id.
CREATE INDEX hosts_open ON hosts (location, family, free_gpus, id) WHERE is_schedulable AND state = 'up';
-- The same for those that can keep 2 or 4 GPUs inside one NUMA node, found without passing over those that cannot.
CREATE INDEX hosts_open_node_2 ON hosts (location, family, free_gpus, id)
  WHERE is_schedulable AND state = 'up' AND max_node_free >= 2;
CREATE INDEX hosts_open_node_4 ON hosts (location, family, free_gpus, id)
  WHERE is_schedulable AND state = 'up' AND max_node_free >= 4;
