-- The load of the GPUs in an hour, in rows with a step of 300, so that idle VMs are found without unpacking their samples.
-- Hours that earlier versions packed have no values here, and count as unknown.
ALTER TABLE vm_sample_chunks
  -- How many values of GPU utilization were reported: one for each GPU and minute.
  ADD COLUMN gpu_values integer,
  -- The highest of them, in percent.
  ADD COLUMN gpu_peak real;
