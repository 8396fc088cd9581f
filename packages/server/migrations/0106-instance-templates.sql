CREATE TABLE instance_templates (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  name text NOT NULL,
  version integer NOT NULL CHECK (version > 0),
  -- The members that the client sent, in their order.
  body json NOT NULL,
  -- The labels in the body, for the filter of lists.
  labels jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (project_id, name, version)
);
COMMENT ON TABLE instance_templates IS 'Versions of instance templates. A row never changes.';
CREATE INDEX instance_templates_by_project ON instance_templates (project_id, id DESC);

-- The version of the template that a VM was created from, also after that version is deleted; the group of a VM.
ALTER TABLE vms ADD COLUMN instance_template_id uuid, ADD COLUMN group_id uuid;

-- The record of a VM shows both.
ALTER TABLE vms DROP COLUMN record;
DROP FUNCTION vm_record;
CREATE FUNCTION vm_record(
  id uuid, project_id uuid, type text, state text, ssh_destination text, created_at timestamptz,
  updated_at timestamptz, name text, location text, interface_id uuid, network_id uuid, subnet_id uuid,
  mac_address text, private_address inet, public_address inet, public_address_id uuid, image text,
  expires_at timestamptz, on_expiry text, started_at timestamptz, labels jsonb, description text,
  is_protected boolean, ssh_public_keys text[], ssh_host_key text, startup_script_sha256 text, os_disk_id uuid,
  os_disk_size text, instance_template_id uuid, group_id uuid
) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
$$
DECLARE
  time_format constant text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
  created constant text := to_char(created_at AT TIME ZONE 'UTC', time_format);
  location_json constant text := to_json(location);
  -- The name of the VM in a known_hosts file: a port other than that of SSH is part of the name.
  known_host constant text := CASE
    WHEN ssh_destination = '' THEN host(coalesce(public_address, private_address))
    WHEN ssh_destination LIKE '%:%' THEN regexp_replace(ssh_destination, '^.*@(.*):([0-9]+)$', '[\1]:\2')
    ELSE split_part(ssh_destination, '@', 2) END;
BEGIN
  RETURN concat(
    '{"id":"', id, '","project_id":"', project_id, '","type":', to_json(type), ',"state":', to_json(state),
    ',"ssh_destination":', to_json(ssh_destination), ',"created_at":"', created,
    '","updated_at":"', to_char(updated_at AT TIME ZONE 'UTC', time_format), '","name":', to_json(name),
    ',"location":', location_json, ',"commitment_period":0,"commitment_end":"","network_interfaces":[{"id":"',
    interface_id, '","name":"nic0","network":"', network_id, '","subnet":"', subnet_id,
    '","interface_type":"Ethernet","mac_address":', to_json(mac_address), ',"ips":[{"private_ipv4":{"address":"',
    private_address, '"},"public_ipv4":{"address":"', public_address, '","id":"', public_address_id, '","type":"',
    CASE WHEN public_address IS NOT NULL THEN 'dynamic' END, '"}}]}],"host_channel_adapters":[],'
    '"virtualization_features":{"nested_virtualization":false},"instance_template_id":"', instance_template_id,
    '","instance_group_id":"', group_id, '","reservation_id":"","image":', to_json(image),
    ',"expires_at":"', to_char(expires_at AT TIME ZONE 'UTC', time_format), '","on_expiry":', to_json(on_expiry),
    ',"started_at":"', to_char(started_at AT TIME ZONE 'UTC', time_format), '","labels":', labels,
    ',"description":', to_json(description),
    ',"deletion_protection":', CASE WHEN is_protected THEN 'true' ELSE 'false' END,
    ',"ssh_public_keys":', to_json(ssh_public_keys),
    ',"ssh_host_keys":[', CASE WHEN ssh_host_key <> '' THEN to_json(known_host || ' ' || ssh_host_key) END,
    '],"startup_script_sha256":', to_json(startup_script_sha256),
    ',"disks":[{"id":"', os_disk_id, '","name":', to_json(name || '-os'), ',"type":"persistent-ssd","size":',
    to_json(os_disk_size), ',"location":', location_json, ',"block_size":0,"created_at":"', created,
    '","updated_at":"', created, '","serial_number":"', right(replace(os_disk_id::text, '-', ''), 20),
    '","attachment_type":"os","mode":"read-write"}');
END
$$;

ALTER TABLE vms
  ADD COLUMN record text NOT NULL GENERATED ALWAYS AS (vm_record(
    id => id, project_id => project_id, type => type, state => state, ssh_destination => ssh_destination,
    created_at => created_at, updated_at => updated_at, name => name, location => location,
    interface_id => interface_id, network_id => network_id, subnet_id => subnet_id, mac_address => mac_address,
    private_address => private_address, public_address => public_address, public_address_id => public_address_id,
    image => image, expires_at => expires_at, on_expiry => on_expiry, started_at => started_at, labels => labels,
    description => description, is_protected => is_protected, ssh_public_keys => ssh_public_keys,
    ssh_host_key => ssh_host_key, startup_script_sha256 => startup_script_sha256, os_disk_id => os_disk_id,
    os_disk_size => os_disk_size, instance_template_id => instance_template_id, group_id => group_id)) STORED;
