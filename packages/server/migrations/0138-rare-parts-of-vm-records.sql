-- The parts of a VM's record that few VMs have, as functions: each subquery of a statement takes time, even if no row
-- needs it, so a read calls these functions only for the VMs that need them.

-- The length of a reservation's term in whole months.
CREATE FUNCTION term_months(term tstzrange) RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT (extract(year FROM age(upper(term), lower(term))) * 12 + extract(month FROM age(upper(term), lower(term))))::integer
$$;

-- The data disks of a VM, as JSON, each after a comma.
CREATE FUNCTION vm_data_disks(id_of_vm uuid) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  time_format constant text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
BEGIN
  RETURN (
    SELECT string_agg(concat(
      ',{"id":"', d.id, '","name":', to_json(d.name), ',"type":', to_json(d.type), ',"size":', to_json(d.size),
      ',"location":', to_json(d.location), ',"block_size":', d.block_size,
      ',"created_at":"', to_char(d.created_at AT TIME ZONE 'UTC', time_format),
      '","updated_at":"', to_char(d.updated_at AT TIME ZONE 'UTC', time_format),
      '","serial_number":', to_json(d.serial_number), ',"attachment_type":"data","mode":', to_json(a.mode), '}'),
      '' ORDER BY a.position)
    FROM disk_attachments a JOIN disks d ON d.id = a.disk_id WHERE a.vm_id = id_of_vm);
END
$$;

-- A VM's record with the terms of its reservation. Quotation marks in values are escaped, so `replace` matches only real
-- fields.
CREATE FUNCTION vm_reserved_record(own_record text, id_of_reservation uuid) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  term tstzrange;
BEGIN
  SELECT r.term INTO term FROM reservations r WHERE r.id = id_of_reservation;
  RETURN replace(
    replace(own_record, ',"commitment_period":0,"commitment_end":""', concat(
      ',"commitment_period":', term_months(term),
      ',"commitment_end":"', to_char(upper(term) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), '"')),
    ',"reservation_id":""', concat(',"reservation_id":"', id_of_reservation, '"'));
END
$$;
