-- When a new request for one VM would probably be granted, by the VM's number of GPUs. The old column has the time for one
-- GPU. Only servers of the previous version use it.
ALTER TABLE capacity_lanes
  ADD COLUMN likely_at_by_gpus jsonb NOT NULL DEFAULT '{}';
