CREATE TABLE public_addresses (
  address inet PRIMARY KEY,
  -- The id that the VM shows with its public address.
  id uuid NOT NULL,
  project_id uuid NOT NULL REFERENCES projects,
  location text NOT NULL,
  -- The VM that has the address. A VM can have one; vms.public_address says the same.
  vm_id uuid,
  -- The VM that an unfinished operation gives the address to.
  next_vm_id uuid,
  -- Set if a tenant reserved the address. Another address exists only as long as its VM.
  name text,
  labels jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz,
  CHECK (name IS NOT NULL OR vm_id IS NOT NULL OR next_vm_id IS NOT NULL),
  CHECK ((name IS NULL) = (created_at IS NULL))
);
COMMENT ON TABLE public_addresses IS 'Public addresses in use: those of VMs, and those that tenants reserved. No two VMs have one address.';
CREATE UNIQUE INDEX public_addresses_reserved ON public_addresses (id) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX public_addresses_name_key ON public_addresses (project_id, name) WHERE name IS NOT NULL;
CREATE INDEX public_addresses_by_project ON public_addresses (project_id, id DESC) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX public_addresses_next ON public_addresses (next_vm_id) WHERE next_vm_id IS NOT NULL;

-- The public address is a reserved one.
ALTER TABLE vms ADD COLUMN is_address_static boolean NOT NULL DEFAULT false;

INSERT INTO public_addresses (address, id, project_id, location, vm_id)
SELECT public_address, public_address_id, project_id, location, id FROM vms WHERE public_address IS NOT NULL;
DROP INDEX vms_public_address;

-- Keeps public_addresses in agreement with vms.public_address. A VM gets an address that is in no row, or the reserved or
-- promised one that it names by its id; otherwise the statement fails.
CREATE FUNCTION keep_public_address() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.public_address IS NOT NULL THEN
    DELETE FROM public_addresses WHERE address = OLD.public_address AND vm_id = OLD.id AND name IS NULL;
    UPDATE public_addresses SET vm_id = NULL WHERE address = OLD.public_address AND vm_id = OLD.id;
  END IF;
  IF TG_OP = 'DELETE' THEN
    DELETE FROM public_addresses WHERE next_vm_id = OLD.id AND name IS NULL;
    UPDATE public_addresses SET next_vm_id = NULL WHERE next_vm_id = OLD.id;
  ELSIF NEW.public_address IS NOT NULL THEN
    INSERT INTO public_addresses AS a (address, id, project_id, location, vm_id)
    VALUES (NEW.public_address, NEW.public_address_id, NEW.project_id, NEW.location, NEW.id)
    ON CONFLICT (address) DO UPDATE SET vm_id = excluded.vm_id, next_vm_id = NULL
      WHERE a.id = excluded.id AND a.project_id = excluded.project_id AND a.vm_id IS NULL
        AND coalesce(a.next_vm_id, excluded.vm_id) = excluded.vm_id;
    PERFORM assert_or_abort(FOUND, 'the public address is taken');
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER vms_public_address_given AFTER INSERT ON vms FOR EACH ROW
  WHEN (NEW.public_address IS NOT NULL) EXECUTE FUNCTION keep_public_address();
CREATE TRIGGER vms_public_address_changed AFTER UPDATE OF public_address ON vms FOR EACH ROW
  WHEN (OLD.public_address IS DISTINCT FROM NEW.public_address) EXECUTE FUNCTION keep_public_address();
CREATE TRIGGER vms_public_address_freed AFTER DELETE ON vms FOR EACH ROW EXECUTE FUNCTION keep_public_address();

ALTER TABLE usage_intervals DROP CONSTRAINT usage_intervals_resource_type_check,
  ADD CONSTRAINT usage_intervals_resource_type_check
    CHECK (resource_type IN ('vm', 'disk', 'reservation', 'custom_image', 'snapshot', 'address'));
ALTER TABLE usage_days DROP CONSTRAINT usage_days_resource_type_check,
  ADD CONSTRAINT usage_days_resource_type_check
    CHECK (resource_type IN ('vm', 'disk', 'reservation', 'custom_image', 'snapshot', 'address'));
ALTER TABLE usage_resource_days DROP CONSTRAINT usage_resource_days_resource_type_check,
  ADD CONSTRAINT usage_resource_days_resource_type_check
    CHECK (resource_type IN ('vm', 'disk', 'reservation', 'custom_image', 'snapshot', 'address'));
ALTER TABLE prices DROP CONSTRAINT prices_unit_check,
  ADD CONSTRAINT prices_unit_check CHECK (unit IN ('vm_hour', 'gb_hour', 'gpu_hour', 'address_hour'));
ALTER TABLE invoice_lines DROP CONSTRAINT invoice_lines_unit_check,
  ADD CONSTRAINT invoice_lines_unit_check CHECK (unit IN ('vm_hour', 'gb_hour', 'gpu_hour', 'address_hour'));

-- A reserved address is metered while no VM has it, and while its VM is not metered. The meters of VMs change in several
-- statements, so this follows the rows.
CREATE FUNCTION meter_reserved_address() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  reserved public_addresses;
  wanted uuid;
  is_metered boolean;
BEGIN
  IF TG_TABLE_NAME = 'vms' THEN wanted := NEW.public_address_id; ELSE wanted := coalesce(NEW.id, OLD.id); END IF;
  SELECT * INTO reserved FROM public_addresses WHERE id = wanted AND name IS NOT NULL;
  is_metered := FOUND AND NOT EXISTS (SELECT FROM vms WHERE id = reserved.vm_id AND metered_since IS NOT NULL);
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
CREATE TRIGGER public_addresses_metered AFTER INSERT OR UPDATE OF vm_id, name ON public_addresses FOR EACH ROW
  WHEN (NEW.name IS NOT NULL) EXECUTE FUNCTION meter_reserved_address();
CREATE TRIGGER public_addresses_withdrawn AFTER DELETE ON public_addresses FOR EACH ROW
  WHEN (OLD.name IS NOT NULL) EXECUTE FUNCTION meter_reserved_address();
CREATE TRIGGER vms_reserved_address_metered AFTER UPDATE OF metered_since ON vms FOR EACH ROW
  WHEN (NEW.is_address_static AND (OLD.metered_since IS NULL) <> (NEW.metered_since IS NULL))
  EXECUTE FUNCTION meter_reserved_address();
