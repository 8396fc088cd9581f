-- The end of a VM's record, which follows its disks. Like `record`, it changes only with the row, so that a read of a VM
-- adds only its disks, its price and its cost.
CREATE FUNCTION vm_record_end(
  state text, state_since timestamptz, started_at timestamptz, health jsonb, custom_image_id uuid, idle_policy jsonb,
  idle_since timestamptz, on_gpu_fault text, last_replaced_at timestamptz
) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  time_format constant text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
BEGIN
  RETURN concat(
    '],"custom_image_id":"', custom_image_id, '","idle_policy":', coalesce(idle_policy::text, 'null'),
    ',"idle_since":"', to_char(idle_since AT TIME ZONE 'UTC', time_format),
    '","health":', CASE
      WHEN state NOT IN ('STATE_RUNNING', 'STATE_STOPPING', 'STATE_RESETTING', 'STATE_CRASHED') THEN
        concat('{"status":"unknown","since":"', to_char(state_since AT TIME ZONE 'UTC', time_format), '","reasons":[]}')
      ELSE coalesce(health::text,
        concat('{"status":"healthy","since":"', to_char(started_at AT TIME ZONE 'UTC', time_format), '","reasons":[]}')) END,
    ',"on_gpu_fault":"', on_gpu_fault,
    '","last_replaced_at":"', to_char(last_replaced_at AT TIME ZONE 'UTC', time_format), '"');
END
$$;

ALTER TABLE vms
  ADD COLUMN record_end text NOT NULL GENERATED ALWAYS AS (vm_record_end(
    state => state, state_since => state_since, started_at => started_at, health => health,
    custom_image_id => custom_image_id, idle_policy => idle_policy, idle_since => idle_since,
    on_gpu_fault => on_gpu_fault, last_replaced_at => last_replaced_at)) STORED;
