-- What happens when all GPUs of a VM are idle: {min_gpu_utilization, window_seconds, action, ignore_ssh}.
ALTER TABLE vms
  ADD COLUMN idle_policy jsonb,
  -- When the policy was last changed.
  ADD COLUMN idle_policy_at timestamptz,
  -- The minute of the first idle sample since the last busy one.
  ADD COLUMN idle_since timestamptz,
  -- When the VM will be stopped, after its owner was warned.
  ADD COLUMN idle_stops_at timestamptz,
  -- When an event said that the VM is idle or will be stopped, or that it is unknown whether it is idle.
  ADD COLUMN idle_told_at timestamptz;

CREATE INDEX vms_with_idle_policy ON vms (location) WHERE idle_policy IS NOT NULL;
