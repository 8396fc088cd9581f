-- From when on GPUs are collected for a reservation.
ALTER TABLE reservations ADD collects_at timestamptz;
UPDATE reservations SET collects_at = lower(term) - interval '24 hours';
ALTER TABLE reservations ALTER collects_at SET NOT NULL;

-- The reservation that a VM used last on the day.
ALTER TABLE usage_resource_days ADD reservation_id uuid;

-- A failed creation of an instance group is an alert of the project, as that of a VM is.
CREATE INDEX operations_failed_group_creations ON operations (project_id, completed_at)
  WHERE state = 'FAILED' AND name = 'CREATE' AND resource_type = 'instance_group';
