-- What people say of their things, and the SSH keys that they put into VMs.

ALTER TABLE projects ADD labels jsonb NOT NULL DEFAULT '{}';
ALTER TABLE networks ADD labels jsonb NOT NULL DEFAULT '{}';
ALTER TABLE firewall_rules ADD labels jsonb NOT NULL DEFAULT '{}';
ALTER TABLE disks
  ADD labels jsonb NOT NULL DEFAULT '{}',
  ADD description text NOT NULL DEFAULT '',
  ADD is_protected boolean NOT NULL DEFAULT false;
ALTER TABLE vms
  ADD labels jsonb NOT NULL DEFAULT '{}',
  ADD description text NOT NULL DEFAULT '',
  ADD is_protected boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN disks.is_protected IS 'A deletion is refused while it is set.';
COMMENT ON COLUMN vms.is_protected IS 'A deletion is refused while it is set; expiry only stops the VM.';

CREATE TABLE ssh_keys (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  name text NOT NULL,
  public_key text NOT NULL,
  type text NOT NULL,
  fingerprint text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  CONSTRAINT ssh_keys_project_id_name_key UNIQUE (project_id, name)
);
COMMENT ON TABLE ssh_keys IS 'Public keys that VM creations name by id. VMs have copies.';
COMMENT ON COLUMN ssh_keys.public_key IS 'As it was sent.';
CREATE INDEX ssh_keys_by_project ON ssh_keys (project_id, id);
