-- What a VM was given: keys, the size of its OS disk; and what it proves its name by.

ALTER TABLE vms
  ADD ssh_public_keys text[] NOT NULL DEFAULT '{}',
  ADD ssh_host_key text NOT NULL DEFAULT '',
  ADD ssh_host_key_sealed bytea,
  ADD os_disk_size text NOT NULL DEFAULT '128GiB',
  ADD os_disk_gib integer NOT NULL DEFAULT 128 CHECK (os_disk_gib BETWEEN 128 AND 2048),
  ADD startup_script_sha256 text NOT NULL DEFAULT '';
UPDATE vms SET
  ssh_public_keys = ARRAY[ssh_public_key],
  startup_script_sha256 = CASE startup_script WHEN '' THEN '' ELSE encode(sha256(convert_to(startup_script, 'UTF8')), 'hex') END;
ALTER TABLE vms DROP ssh_public_key;
COMMENT ON COLUMN vms.ssh_host_key IS 'The public half, as ssh-ed25519 and its data; empty where the guest made its own.';
COMMENT ON COLUMN vms.ssh_host_key_sealed IS 'The private half, under the master key, until the guest has it.';
COMMENT ON COLUMN vms.os_disk_size IS 'As it was sent.';
