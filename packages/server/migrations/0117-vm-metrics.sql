-- Samples of running VMs of this hour and the one before, one a minute. Older ones are packed into chunks. There is no
-- foreign key: it would lock the row of every VM once a minute.
CREATE TABLE vm_samples (
  vm_id uuid NOT NULL,
  -- The start of its minute.
  at timestamptz NOT NULL,
  -- {h: values of hostMetrics, g: for each GPU the values of gpuMetrics}; null where there is no value.
  data json NOT NULL,
  PRIMARY KEY (vm_id, at)
);
COMMENT ON TABLE vm_samples IS 'Recent samples of VMs, one a minute.';
CREATE INDEX vm_samples_by_time ON vm_samples (at);

-- The samples of one VM and hour in one row, so that a chart of a day reads few rows.
CREATE TABLE vm_sample_chunks (
  vm_id uuid NOT NULL,
  hour timestamptz NOT NULL,
  -- Seconds between two samples: 60 is kept for a day, 300 for 15 days.
  step integer NOT NULL CHECK (step IN (60, 300)),
  -- {t: times in seconds since 1970, h: a list for each value, g: a list for each value of each GPU}
  data json NOT NULL
);
COMMENT ON TABLE vm_sample_chunks IS 'Packed samples of VMs: one row for each VM, hour and resolution.';
CREATE INDEX vm_sample_chunks_of_vm ON vm_sample_chunks (vm_id, step, hour);
CREATE INDEX vm_sample_chunks_by_time ON vm_sample_chunks (step, hour);

CREATE TABLE vm_guests (
  vm_id uuid PRIMARY KEY REFERENCES vms ON DELETE CASCADE,
  -- [{uuid, name}] of the GPUs that the guest sees.
  gpus jsonb NOT NULL DEFAULT '[]'
);
COMMENT ON TABLE vm_guests IS 'What a guest reports about itself and seldom changes. It may be false.';

-- What the lever of a local service lets the guest of a simulated VM report: {gpu_utilization, ssh_sessions} or {silent}.
ALTER TABLE simulated_vms ADD COLUMN metrics jsonb;
