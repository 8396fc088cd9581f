-- Errors that a driver reported, and GPUs that their host has lost.
CREATE TABLE gpu_faults (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  gpu_id uuid NOT NULL REFERENCES gpus ON DELETE CASCADE,
  -- The VM that had the GPU. It may not exist any more.
  vm_id uuid,
  -- The number of the XID error; 0 for a GPU that is lost without one.
  xid integer NOT NULL CHECK (xid >= 0),
  -- What a guest reports may be false.
  source text NOT NULL CHECK (source IN ('host', 'guest')),
  at timestamptz NOT NULL,
  -- A repeated report adds nothing.
  UNIQUE (gpu_id, xid, at)
);
COMMENT ON TABLE gpu_faults IS 'Faults of GPUs, kept for 400 days.';
CREATE INDEX gpu_faults_by_time ON gpu_faults (at);
CREATE INDEX gpu_faults_of_gpu ON gpu_faults (gpu_id, id);
CREATE INDEX gpu_faults_of_vm ON gpu_faults (vm_id) WHERE vm_id IS NOT NULL;

ALTER TABLE gpus
  -- When the GPU became suspect. It returns to stock only after it has passed a check, or if an operator releases
  -- it.
  ADD COLUMN suspect_since timestamptz,
  ADD COLUMN fault_count integer NOT NULL DEFAULT 0,
  -- When the host first reported that the GPU does not respond.
  ADD COLUMN lost_at timestamptz,
  -- [{xid, at}]: XID errors that the host itself reports.
  ADD COLUMN host_xids jsonb,
  -- The last check of the GPU in quarantine; the reasons are empty if it passed without a warning.
  ADD COLUMN checked_at timestamptz,
  ADD COLUMN has_passed_check boolean,
  ADD COLUMN check_reasons jsonb NOT NULL DEFAULT '[]';
CREATE INDEX gpus_with_host_faults ON gpus (host_id) WHERE lost_at IS NOT NULL OR host_xids IS NOT NULL;

ALTER TABLE vms
  ADD COLUMN on_gpu_fault text NOT NULL DEFAULT 'none' CHECK (on_gpu_fault IN ('none', 'replace')),
  -- {status, since, reasons} while a GPU of the VM is degraded or unhealthy.
  ADD COLUMN health jsonb,
  ADD COLUMN last_replaced_at timestamptz,
  -- The time from which the VM is not billed, because its host has lost a GPU.
  ADD COLUMN billing_paused_at timestamptz;
CREATE INDEX vms_in_ill_health ON vms (location) WHERE health IS NOT NULL;
CREATE INDEX vms_with_paused_billing ON vms (billing_paused_at) WHERE billing_paused_at IS NOT NULL;

-- Where the reading of a guest's errors ended: the guest's boot and the position in its kernel log.
ALTER TABLE vm_guests ADD COLUMN xid_boot text NOT NULL DEFAULT '', ADD COLUMN xid_position bigint NOT NULL DEFAULT 0;

-- XID errors that a lever of a local service makes the guest or the host of a simulated VM report.
CREATE TABLE simulated_xids (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  location text NOT NULL,
  host text NOT NULL,
  pci_address text NOT NULL,
  vm_id uuid NOT NULL,
  gpu_index integer NOT NULL,
  xid integer NOT NULL,
  source text NOT NULL CHECK (source IN ('host', 'guest')),
  at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE simulated_xids IS 'XID errors of GPUs of the simulated engine.';
CREATE INDEX simulated_xids_of_vm ON simulated_xids (vm_id);
CREATE INDEX simulated_xids_of_host ON simulated_xids (location, host);

-- The reserved address of a VM whose billing is paused counts as in use, so it costs nothing, just as when the VM
-- is billed.
CREATE OR REPLACE FUNCTION meter_reserved_address() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  reserved public_addresses;
  wanted uuid;
  is_metered boolean;
BEGIN
  IF TG_TABLE_NAME = 'vms' THEN wanted := NEW.public_address_id; ELSE wanted := coalesce(NEW.id, OLD.id); END IF;
  SELECT * INTO reserved FROM public_addresses WHERE id = wanted AND name IS NOT NULL;
  is_metered := FOUND AND NOT EXISTS (
    SELECT FROM vms WHERE id = reserved.vm_id AND num_nonnulls(metered_since, billing_paused_at) > 0);
  IF NOT is_metered THEN
    UPDATE usage_intervals i
    SET period = tstzrange(lower(i.period), greatest(slipway_now(), lower(i.period) + interval '1 millisecond'))
    WHERE i.resource_id = wanted AND upper_inf(i.period);
  ELSIF NOT EXISTS (SELECT FROM usage_intervals i WHERE i.resource_id = wanted AND upper_inf(i.period)) THEN
    INSERT INTO usage_intervals (project_id, location, resource_type, resource_id, resource_name, labels, product_name,
                                 quantity, period)
    VALUES (reserved.project_id, reserved.location, 'address', reserved.id, reserved.name, reserved.labels,
            'reserved-address', 1, tstzrange(slipway_now(), NULL));
  END IF;
  RETURN NULL;
END
$$;
-- When a VM whose billing is paused is stopped, `metered_since` is null before and after, so the trigger on that
-- column does not fire. This trigger handles that case.
CREATE TRIGGER vms_reserved_address_paused AFTER UPDATE OF billing_paused_at ON vms FOR EACH ROW
  WHEN (new.is_address_static AND (old.billing_paused_at IS NULL) <> (new.billing_paused_at IS NULL))
  EXECUTE FUNCTION meter_reserved_address();
