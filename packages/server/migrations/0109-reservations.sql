CREATE TABLE reservations (
  id uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations,
  -- The project that pays.
  billing_project_id uuid NOT NULL REFERENCES projects,
  -- The projects whose VMs may use it; empty means all of the organization.
  projects uuid[] NOT NULL DEFAULT '{}',
  -- Capacity is collected in units of this type, each on one host.
  type text NOT NULL,
  family text NOT NULL,
  unit_gpus integer NOT NULL CHECK (unit_gpus > 0),
  location text NOT NULL REFERENCES locations,
  -- In GPUs.
  quantity integer NOT NULL CHECK (quantity > 0 AND quantity % unit_gpus = 0),
  term tstzrange NOT NULL CHECK (NOT isempty(term) AND NOT lower_inf(term) AND NOT upper_inf(term)),
  usd_per_gpu_hour numeric NOT NULL CHECK (usd_per_gpu_hour >= 0),
  delivery_deadline timestamptz,
  -- The GPUs that the meter counts now.
  metered_gpus integer NOT NULL DEFAULT 0,
  -- When all GPUs were there for the first time, and whether the organization knows that some are missing.
  delivered_at timestamptz,
  is_short boolean NOT NULL DEFAULT false,
  -- The warnings of the end that were sent: 30 days, 7 days, 24 hours and 1 hour ahead.
  notices integer NOT NULL DEFAULT 0,
  ended_at timestamptz,
  -- When the service next has to act on the reservation.
  due_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  CHECK ((ended_at IS NULL) = (due_at IS NOT NULL))
);
COMMENT ON TABLE reservations IS 'GPUs that an organization has bought for a time. The GPUs have its id in held_for.';
CREATE INDEX reservations_by_organization ON reservations (organization_id, id);
CREATE INDEX reservations_open ON reservations (organization_id) WHERE ended_at IS NULL;
CREATE INDEX reservations_in_lane ON reservations (location, family) WHERE ended_at IS NULL;
CREATE INDEX reservations_by_billing_project ON reservations (billing_project_id) WHERE ended_at IS NULL;
CREATE INDEX reservations_late ON reservations (id) WHERE is_short AND ended_at IS NULL;
CREATE INDEX reservations_due ON reservations (due_at) WHERE due_at IS NOT NULL;

-- The reservation whose GPUs the VM uses now.
ALTER TABLE vms ADD reservation_id uuid REFERENCES reservations;
CREATE INDEX vms_by_reservation ON vms (reservation_id) WHERE reservation_id IS NOT NULL;

-- A reservation has a meter and a price of its own; the VMs in it cost nothing.
ALTER TABLE usage_intervals ADD reservation_id uuid,
  DROP CONSTRAINT usage_intervals_resource_type_check,
  ADD CONSTRAINT usage_intervals_resource_type_check CHECK (resource_type IN ('vm', 'disk', 'reservation'));
ALTER TABLE usage_days DROP CONSTRAINT usage_days_resource_type_check,
  ADD CONSTRAINT usage_days_resource_type_check CHECK (resource_type IN ('vm', 'disk', 'reservation'));
ALTER TABLE usage_resource_days DROP CONSTRAINT usage_resource_days_resource_type_check,
  ADD CONSTRAINT usage_resource_days_resource_type_check CHECK (resource_type IN ('vm', 'disk', 'reservation'));
ALTER TABLE prices DROP CONSTRAINT prices_unit_check,
  ADD CONSTRAINT prices_unit_check CHECK (unit IN ('vm_hour', 'gb_hour', 'gpu_hour'));
ALTER TABLE invoice_lines DROP CONSTRAINT invoice_lines_unit_check,
  ADD CONSTRAINT invoice_lines_unit_check CHECK (unit IN ('vm_hour', 'gb_hour', 'gpu_hour'));
