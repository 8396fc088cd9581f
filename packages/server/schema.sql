-- Exclusion constraints over (uuid, range) need GiST operators for uuid.
CREATE EXTENSION IF NOT EXISTS btree_gist;

-- ── Clock ─────────────────────────────────────────────────────────────────────────────────────────────────────────

-- One clock, the database's. Tests and a local service turn it; leases, deadlines, expiry and intervals follow.
CREATE TABLE clock (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  shift interval NOT NULL DEFAULT '0',
  frozen_at timestamptz
);
INSERT INTO clock DEFAULT VALUES;

-- Statement time, so that it is STABLE and indexes on times can be used; never the transaction's start.
CREATE FUNCTION slipway_now() RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT date_trunc('milliseconds', coalesce(frozen_at, statement_timestamp() + shift)) FROM clock $$;

-- ── Organizations, people, credentials ────────────────────────────────────────────────────────────────────────────

CREATE TABLE organizations (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  payment_customer_id text NOT NULL DEFAULT '',
  -- never: no method yet, the whole API is gated. declined, removed: only what costs money is.
  payment_state text NOT NULL DEFAULT 'never' CHECK (payment_state IN ('never', 'active', 'declined', 'removed')),
  suspended_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);

CREATE TABLE users (
  id uuid PRIMARY KEY,
  email text NOT NULL UNIQUE CHECK (email = lower(email)),
  -- Argon2id; null while only invited.
  password_hash text,
  is_operator boolean NOT NULL DEFAULT false,
  suspended_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);

CREATE TABLE memberships (
  organization_id uuid NOT NULL REFERENCES organizations,
  user_id uuid NOT NULL REFERENCES users,
  role text NOT NULL CHECK (role IN ('viewer', 'member', 'admin', 'owner')),
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX memberships_by_user ON memberships (user_id);

-- Invitations and the first operator's set-up code; only hashes are kept.
CREATE TABLE one_time_codes (
  code_hash bytea PRIMARY KEY,
  purpose text NOT NULL CHECK (purpose IN ('setup', 'invite')),
  user_id uuid REFERENCES users,
  expires_at timestamptz NOT NULL,
  used_at timestamptz,
  CHECK ((purpose = 'invite') = (user_id IS NOT NULL))
);

-- A family is one sign-in: all access and refresh tokens that descend from it die with it.
CREATE TABLE token_families (
  id uuid PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES users,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  revoked_at timestamptz
);
CREATE INDEX token_families_by_user ON token_families (user_id);

CREATE TABLE access_tokens (
  token_hash bytea PRIMARY KEY,
  family_id uuid NOT NULL REFERENCES token_families ON DELETE CASCADE,
  expires_at timestamptz NOT NULL
);
CREATE INDEX access_tokens_by_family ON access_tokens (family_id);
CREATE INDEX access_tokens_by_expiry ON access_tokens (expires_at);

CREATE TABLE refresh_tokens (
  token_hash bytea PRIMARY KEY,
  family_id uuid NOT NULL REFERENCES token_families ON DELETE CASCADE,
  expires_at timestamptz NOT NULL,
  spent_at timestamptz,
  -- The successor's answer, encrypted under a key derived from this token: given again for 10 s if it got lost.
  successor_hash bytea,
  successor_sealed bytea
);
CREATE INDEX refresh_tokens_by_family ON refresh_tokens (family_id);
CREATE INDEX refresh_tokens_by_expiry ON refresh_tokens (expires_at);

CREATE TABLE projects (
  id uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations,
  name text NOT NULL,
  version text NOT NULL DEFAULT 'v0.1',
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  -- Kept for usage and audit; hidden from everyone else.
  deleted_at timestamptz
);
CREATE UNIQUE INDEX projects_name ON projects (organization_id, name) WHERE deleted_at IS NULL;

-- Project keys and operator keys. The secret is random and long, so that a plain SHA-256 of it is enough.
CREATE TABLE access_keys (
  id uuid PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('project', 'operator')),
  project_id uuid REFERENCES projects,
  name text NOT NULL,
  role text NOT NULL CHECK (role IN ('read', 'write')),
  prefix text NOT NULL,
  secret_hash bytea NOT NULL UNIQUE,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  CHECK ((kind = 'project') = (project_id IS NOT NULL))
);
CREATE INDEX access_keys_by_project ON access_keys (project_id, id DESC) WHERE revoked_at IS NULL;

-- Failed password attempts, shared by all processes.
CREATE TABLE password_failures (
  email text NOT NULL,
  address text NOT NULL,
  failed_at timestamptz NOT NULL DEFAULT slipway_now()
);
CREATE INDEX password_failures_recent ON password_failures (email, address, failed_at);

-- Only 200s are remembered. The answer is encrypted under a key derived from the Idempotency-Key.
CREATE TABLE idempotency_keys (
  caller text NOT NULL,
  key_hash bytea NOT NULL,
  request_hash bytea NOT NULL,
  answer_sealed bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (caller, key_hash)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- ── Catalogue ─────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE locations (
  name text PRIMARY KEY,
  region text NOT NULL,
  zone text NOT NULL,
  description text NOT NULL DEFAULT '',
  engine text NOT NULL CHECK (engine IN ('simulated', 'qemu', 'incus')),
  storage text NOT NULL CHECK (storage IN ('shared', 'local')),
  -- Null where VMs can have no public address.
  public_ipv4 cidr,
  -- The order of slipway.toml.
  position integer NOT NULL
);

CREATE TABLE images (
  id uuid PRIMARY KEY,
  name text NOT NULL UNIQUE CHECK (name LIKE '%:%'),
  description text NOT NULL DEFAULT '',
  tags text[] NOT NULL DEFAULT '{}',
  locations text[] NOT NULL DEFAULT '{}',
  -- What the engines need to find it.
  source jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);

-- A price holds from its time until the next one of the same product.
CREATE TABLE prices (
  product_name text NOT NULL,
  valid_from timestamptz NOT NULL,
  unit text NOT NULL CHECK (unit IN ('vm_hour', 'gb_hour')),
  usd numeric NOT NULL CHECK (usd >= 0),
  PRIMARY KEY (product_name, valid_from)
);

CREATE TABLE quotas (
  project_id uuid NOT NULL REFERENCES projects,
  name text NOT NULL,
  max bigint NOT NULL CHECK (max >= 0),
  used bigint NOT NULL DEFAULT 0 CHECK (used >= 0),
  PRIMARY KEY (project_id, name)
);

-- ── Fleet ─────────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE hosts (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  location text NOT NULL REFERENCES locations,
  -- Of all its GPUs; empty until the first report.
  family text NOT NULL DEFAULT '',
  is_schedulable boolean NOT NULL DEFAULT true,
  state text NOT NULL DEFAULT 'down' CHECK (state IN ('up', 'down', 'draining', 'drained')),
  -- An operator's wish, which outlives a time without reports.
  is_draining boolean NOT NULL DEFAULT false,
  capabilities jsonb NOT NULL DEFAULT '{}',
  -- How many GPUs its cores and memory can serve.
  usable_gpus integer NOT NULL DEFAULT 0,
  -- Kept by trigger from the GPU rows, never by hand.
  free_gpus integer NOT NULL DEFAULT 0 CHECK (free_gpus >= 0),
  max_node_free integer NOT NULL DEFAULT 0,
  claimed_gpus integer NOT NULL DEFAULT 0,
  -- Kept by trigger from the VM rows.
  vms_building integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (location, name)
);
-- The placement predicate: fullest host that still fits, then fewest VMs being built, then id.
CREATE INDEX hosts_open ON hosts (location, family, free_gpus, vms_building, id) WHERE is_schedulable AND state = 'up';
-- The same for those that can keep 2 or 4 GPUs inside one NUMA node, found without passing over those that cannot.
CREATE INDEX hosts_open_node_2 ON hosts (location, family, free_gpus, vms_building, id)
  WHERE is_schedulable AND state = 'up' AND max_node_free >= 2;
CREATE INDEX hosts_open_node_4 ON hosts (location, family, free_gpus, vms_building, id)
  WHERE is_schedulable AND state = 'up' AND max_node_free >= 4;
CREATE INDEX hosts_draining ON hosts (id) WHERE state = 'draining';

-- Apart from hosts, so that reports never wait for a placement's row lock.
CREATE TABLE host_reports (
  host_id uuid PRIMARY KEY REFERENCES hosts ON DELETE CASCADE,
  reported_at timestamptz NOT NULL,
  fingerprint text NOT NULL
);

CREATE TABLE gpus (
  id uuid PRIMARY KEY,
  host_id uuid NOT NULL REFERENCES hosts ON DELETE CASCADE,
  model text NOT NULL,
  pci_address text NOT NULL,
  numa_node integer NOT NULL DEFAULT -1,
  iommu_group integer,
  state text NOT NULL DEFAULT 'free' CHECK (state IN ('free', 'claimed', 'quarantined', 'gone')),
  -- A GPU belongs to at most one VM: one column, and a claim is a conditional update of it.
  vm_id uuid,
  quarantined_at timestamptz,
  -- Set by an operator: never freed by a reconciler.
  is_held_back boolean NOT NULL DEFAULT false,
  UNIQUE (host_id, pci_address),
  CHECK ((state = 'claimed') = (vm_id IS NOT NULL) OR state = 'gone'),
  CHECK ((state = 'quarantined') = (quarantined_at IS NOT NULL))
);
CREATE INDEX gpus_by_vm ON gpus (vm_id) WHERE vm_id IS NOT NULL;
CREATE INDEX gpus_quarantined ON gpus (quarantined_at) WHERE state = 'quarantined';

CREATE FUNCTION count_host_gpus() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE hosts h SET free_gpus = c.free, max_node_free = least(c.max_node_free, c.free), claimed_gpus = c.claimed
  FROM (
    SELECT host_id,
           greatest(0, least(sum(free), min(usable) - sum(claimed)))::integer AS free,
           max(free)::integer AS max_node_free,
           sum(claimed)::integer AS claimed
    FROM (
      SELECT g.host_id, g.numa_node,
             count(*) FILTER (WHERE g.state = 'free') AS free,
             count(*) FILTER (WHERE g.state = 'claimed' OR g.vm_id IS NOT NULL) AS claimed,
             min(hosts.usable_gpus) AS usable
      FROM gpus g JOIN hosts ON hosts.id = g.host_id
      WHERE g.host_id IN (SELECT host_id FROM changed)
      GROUP BY g.host_id, g.numa_node
    ) nodes
    GROUP BY host_id
  ) c
  WHERE h.id = c.host_id
    AND (h.free_gpus, h.max_node_free, h.claimed_gpus) IS DISTINCT FROM (c.free, least(c.max_node_free, c.free), c.claimed);
  RETURN NULL;
END $$;
CREATE TRIGGER gpus_inserted AFTER INSERT ON gpus REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_host_gpus();
CREATE TRIGGER gpus_updated AFTER UPDATE ON gpus REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_host_gpus();
CREATE TRIGGER gpus_deleted AFTER DELETE ON gpus REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION count_host_gpus();

-- ── Networks ──────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE networks (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  name text NOT NULL,
  cidr cidr NOT NULL,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (project_id, name),
  -- No overlap inside a project.
  EXCLUDE USING gist (project_id WITH =, cidr inet_ops WITH &&)
);

CREATE TABLE subnets (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  network_id uuid NOT NULL REFERENCES networks,
  name text NOT NULL,
  cidr cidr NOT NULL,
  location text NOT NULL REFERENCES locations,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (project_id, name),
  EXCLUDE USING gist (network_id WITH =, cidr inet_ops WITH &&)
);
CREATE INDEX subnets_by_network ON subnets (network_id, location);

CREATE TABLE firewall_rules (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  network_id uuid NOT NULL REFERENCES networks,
  name text NOT NULL,
  direction text NOT NULL CHECK (direction IN ('ingress', 'egress')),
  action text NOT NULL CHECK (action IN ('allow', 'deny')),
  state text NOT NULL CHECK (state IN ('creating', 'active', 'updating', 'deleting')),
  -- jsonb and arrays keep order and spelling as the client sent them.
  sources jsonb NOT NULL,
  source_ports text[] NOT NULL,
  destinations jsonb NOT NULL,
  destination_ports text[] NOT NULL,
  protocols text[] NOT NULL,
  generation bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (project_id, name)
);
CREATE INDEX firewall_rules_by_network ON firewall_rules (network_id);

-- ── VMs and disks ─────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE vms (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  name text NOT NULL,
  type text NOT NULL,
  family text NOT NULL,
  gpu_count integer NOT NULL,
  location text NOT NULL REFERENCES locations,
  state text NOT NULL,
  -- Raised by every operation on the VM and by its deletion; engines refuse an older one.
  generation bigint NOT NULL DEFAULT 1,
  -- Where it is defined. Kept while shut off, so that its local disks stay reachable.
  host_id uuid REFERENCES hosts,
  image text NOT NULL,
  image_source jsonb NOT NULL DEFAULT '{}',
  ssh_public_key text NOT NULL,
  startup_script text NOT NULL DEFAULT '',
  shutdown_script text NOT NULL DEFAULT '',
  ssh_destination text NOT NULL DEFAULT '',
  os_disk_id uuid NOT NULL,
  interface_id uuid NOT NULL,
  network_id uuid NOT NULL REFERENCES networks,
  subnet_id uuid NOT NULL REFERENCES subnets,
  mac_address text NOT NULL UNIQUE,
  private_address inet NOT NULL,
  public_address inet,
  public_address_id uuid,
  ttl_seconds integer,
  on_expiry text NOT NULL DEFAULT 'stop' CHECK (on_expiry IN ('stop', 'delete')),
  expires_at timestamptz,
  expiry_warned_at timestamptz,
  -- What the firewall should be and what the engine has: the reconciler closes the gap.
  firewall_wanted bigint NOT NULL DEFAULT 1,
  firewall_applied bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  updated_at timestamptz NOT NULL DEFAULT slipway_now(),
  -- Deleted while its host was away: hidden, but it holds GPUs, disks and addresses until proven gone.
  deleted_at timestamptz,
  CHECK ((public_address IS NULL) = (public_address_id IS NULL)),
  CONSTRAINT vms_private_address UNIQUE (network_id, private_address)
);
CREATE UNIQUE INDEX vms_name ON vms (project_id, name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX vms_public_address ON vms (public_address) WHERE public_address IS NOT NULL;
CREATE INDEX vms_by_project ON vms (project_id, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX vms_by_host ON vms (host_id) WHERE host_id IS NOT NULL;
CREATE INDEX vms_by_subnet ON vms (subnet_id);
CREATE INDEX vms_firewall_behind ON vms (network_id) WHERE firewall_applied < firewall_wanted;
CREATE INDEX vms_expiring ON vms (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX vms_ghosts ON vms (id) WHERE deleted_at IS NOT NULL;

CREATE FUNCTION count_host_building() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  was boolean := TG_OP <> 'INSERT' AND OLD.host_id IS NOT NULL AND OLD.state IN ('STATE_CREATING', 'STATE_STARTING');
  is_now boolean := TG_OP <> 'DELETE' AND NEW.host_id IS NOT NULL AND NEW.state IN ('STATE_CREATING', 'STATE_STARTING');
BEGIN
  IF was AND NOT (is_now AND NEW.host_id = OLD.host_id) THEN
    UPDATE hosts SET vms_building = vms_building - 1 WHERE id = OLD.host_id;
  END IF;
  IF is_now AND NOT (was AND NEW.host_id = OLD.host_id) THEN
    UPDATE hosts SET vms_building = vms_building + 1 WHERE id = NEW.host_id;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER vms_building_inserted AFTER INSERT OR DELETE ON vms
  FOR EACH ROW EXECUTE FUNCTION count_host_building();
CREATE TRIGGER vms_building_updated AFTER UPDATE OF state, host_id ON vms
  FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state OR OLD.host_id IS DISTINCT FROM NEW.host_id)
  EXECUTE FUNCTION count_host_building();

CREATE TABLE disks (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  name text NOT NULL,
  type text NOT NULL CHECK (type IN ('persistent-ssd', 'shared-volume')),
  -- As the client wrote it, and in GiB.
  size text NOT NULL,
  size_gib bigint NOT NULL CHECK (size_gib > 0),
  location text NOT NULL REFERENCES locations,
  block_size integer NOT NULL CHECK (block_size IN (0, 512, 4096)),
  serial_number text NOT NULL,
  state text NOT NULL CHECK (state IN ('creating', 'available', 'resizing', 'deleting')),
  generation bigint NOT NULL DEFAULT 1,
  -- Local storage: where it lives from its first attachment on.
  host_id uuid REFERENCES hosts,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  updated_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (project_id, name)
);
CREATE INDEX disks_by_project ON disks (project_id, id DESC);

CREATE TABLE disk_attachments (
  vm_id uuid NOT NULL REFERENCES vms ON DELETE CASCADE,
  disk_id uuid NOT NULL REFERENCES disks,
  mode text NOT NULL CHECK (mode IN ('read-write', 'read-only')),
  -- A shared volume has many writers, a persistent disk one.
  is_exclusive boolean NOT NULL,
  attached_at timestamptz NOT NULL DEFAULT slipway_now(),
  position integer GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (vm_id, disk_id)
);
CREATE UNIQUE INDEX disk_attachments_one_writer ON disk_attachments (disk_id) WHERE is_exclusive;
CREATE INDEX disk_attachments_by_disk ON disk_attachments (disk_id);

-- ── Operations ────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE operations (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  -- The registry's name of it, such as vm-create.
  kind text NOT NULL,
  name text NOT NULL,
  resource_type text NOT NULL CHECK (resource_type IN ('vm', 'disk', 'firewall_rule')),
  resource_id uuid NOT NULL,
  -- The generation that its engine calls carry.
  generation bigint NOT NULL,
  -- json, not jsonb: both come back in the order in which they were written.
  request json NOT NULL,
  state text NOT NULL DEFAULT 'IN_PROGRESS' CHECK (state IN ('IN_PROGRESS', 'SUCCEEDED', 'FAILED')),
  result json,
  step integer NOT NULL DEFAULT 0,
  -- What steps tell later steps.
  scratch jsonb NOT NULL DEFAULT '{}',
  -- [{name, state, started_at, completed_at}] of the steps begun.
  step_log jsonb NOT NULL DEFAULT '[]',
  attempts integer NOT NULL DEFAULT 0,
  last_error text NOT NULL DEFAULT '',
  -- Why it turned to undo: {code, message}.
  failure jsonb,
  is_undoing boolean NOT NULL DEFAULT false,
  is_cancelled boolean NOT NULL DEFAULT false,
  is_stuck boolean NOT NULL DEFAULT false,
  run_at timestamptz NOT NULL DEFAULT slipway_now(),
  lease_token uuid,
  lease_until timestamptz,
  deadline_at timestamptz NOT NULL,
  actor text NOT NULL,
  request_id text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT slipway_now(),
  completed_at timestamptz,
  CHECK ((state = 'IN_PROGRESS') = (completed_at IS NULL))
);
CREATE INDEX operations_due ON operations (run_at) WHERE state = 'IN_PROGRESS' AND NOT is_stuck;
CREATE INDEX operations_by_project ON operations (project_id, id DESC);
CREATE INDEX operations_by_resource ON operations (resource_id, id DESC);
CREATE INDEX operations_stuck ON operations (id) WHERE is_stuck;
CREATE INDEX operations_by_age ON operations (completed_at) WHERE completed_at IS NOT NULL;
-- At most one unfinished deletion and one other unfinished operation on a resource.
CREATE UNIQUE INDEX operations_one_deletion ON operations (resource_id) WHERE state = 'IN_PROGRESS' AND name = 'DELETE';
CREATE UNIQUE INDEX operations_one_other ON operations (resource_id) WHERE state = 'IN_PROGRESS' AND name <> 'DELETE';

-- ── Events ────────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE events (
  -- Order of writing; for one resource that is also the order of commit.
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL UNIQUE,
  -- Given after commit by one stamper at a time: whoever has read up to a position has missed nothing before it.
  position bigint UNIQUE,
  organization_id uuid,
  project_id uuid,
  type text NOT NULL,
  resource_type text NOT NULL,
  resource_id text NOT NULL,
  actor text NOT NULL,
  request_id text NOT NULL,
  data jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);
CREATE INDEX events_unstamped ON events (seq) WHERE position IS NULL;
CREATE INDEX events_by_project ON events (project_id, position DESC);
CREATE INDEX events_by_resource ON events (resource_id, position DESC);
CREATE INDEX events_by_age ON events (created_at);

CREATE TABLE event_counter (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  last_position bigint NOT NULL DEFAULT 0,
  -- Positions up to here were removed with age.
  pruned_position bigint NOT NULL DEFAULT 0
);
INSERT INTO event_counter DEFAULT VALUES;

-- ── Metering ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- Opened and closed in the transaction that changes the state. Quantity: 1 for a VM, GB for a disk.
CREATE TABLE usage_intervals (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  location text NOT NULL,
  resource_type text NOT NULL CHECK (resource_type IN ('vm', 'disk')),
  resource_id uuid NOT NULL,
  product_name text NOT NULL,
  quantity bigint NOT NULL CHECK (quantity > 0),
  period tstzrange NOT NULL CHECK (NOT isempty(period) AND lower_inc(period) AND NOT upper_inc(period)),
  CONSTRAINT usage_intervals_no_overlap EXCLUDE USING gist (resource_id WITH =, period WITH &&)
);
CREATE INDEX usage_intervals_open ON usage_intervals (resource_id) WHERE upper_inf(period);
CREATE INDEX usage_intervals_by_project ON usage_intervals (project_id);

-- ── Simulated engine ──────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE simulated_hosts (
  location text NOT NULL,
  name text NOT NULL,
  model text NOT NULL,
  gpu_count integer NOT NULL,
  is_lost boolean NOT NULL DEFAULT false,
  PRIMARY KEY (location, name)
);

-- Kept after removal: the highest generation seen refuses a late caller.
CREATE TABLE simulated_vms (
  id uuid PRIMARY KEY,
  location text NOT NULL,
  host text NOT NULL,
  generation bigint NOT NULL,
  is_removed boolean NOT NULL DEFAULT false,
  removed_at timestamptz,
  spec jsonb NOT NULL,
  -- What it was last told; what it is follows from the time: on is booting until ready_at, shutdown is off from ready_at.
  power text NOT NULL DEFAULT 'off' CHECK (power IN ('off', 'on', 'shutdown', 'crashed')),
  ready_at timestamptz,
  gpus text[] NOT NULL DEFAULT '{}',
  firewall jsonb NOT NULL DEFAULT '[]',
  firewall_generation bigint NOT NULL DEFAULT 0,
  serial text NOT NULL DEFAULT ''
);
CREATE INDEX simulated_vms_by_host ON simulated_vms (location, host) WHERE NOT is_removed;

-- When a GPU that a VM left is clean again.
CREATE TABLE simulated_gpu_resets (
  location text NOT NULL,
  host text NOT NULL,
  pci_address text NOT NULL,
  clean_at timestamptz NOT NULL,
  PRIMARY KEY (location, host, pci_address)
);

CREATE TABLE simulated_disks (
  id uuid PRIMARY KEY,
  location text NOT NULL,
  generation bigint NOT NULL,
  is_removed boolean NOT NULL DEFAULT false,
  size_gib bigint NOT NULL
);

-- Faults on demand. fail: refuse before doing it; lie: do it and answer an error; forget: answer success and do
-- nothing; delay: wait first. A fault is used up when remaining reaches 0.
CREATE TABLE simulated_faults (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  method text NOT NULL,
  resource_id uuid,
  kind text NOT NULL CHECK (kind IN ('fail', 'reject', 'lie', 'forget', 'delay')),
  delay_ms integer NOT NULL DEFAULT 0,
  remaining integer NOT NULL DEFAULT 1
);

-- ── Usage by day ──────────────────────────────────────────────────────────────────────────────────────────────────

CREATE INDEX usage_intervals_by_project_period ON usage_intervals USING gist (project_id, period);

-- What the intervals of a whole UTC day come to. Written once, when the day is closed.
CREATE TABLE usage_days (
  day date NOT NULL,
  project_id uuid NOT NULL REFERENCES projects,
  location text NOT NULL,
  resource_type text NOT NULL CHECK (resource_type IN ('vm', 'disk')),
  product_name text NOT NULL,
  -- VM-milliseconds or GB-milliseconds.
  quantity_ms bigint NOT NULL CHECK (quantity_ms > 0),
  -- Each part times the price of its time, in USD-milliseconds per hour: exact, to be divided by 3,600,000 when shown.
  -- Null when no price was set.
  cost_usd_ms numeric CHECK (cost_usd_ms >= 0),
  PRIMARY KEY (project_id, day, location, product_name)
);

-- Days are closed in order, one after the other.
CREATE TABLE usage_days_closed (
  day date PRIMARY KEY,
  closed_at timestamptz NOT NULL DEFAULT slipway_now()
);

-- ── Invoices ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- Issued in the transaction that closes the last day of a month. The month under way is computed, not stored.
CREATE TABLE invoices (
  id uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations,
  month date NOT NULL CHECK (extract(day FROM month) = 1),
  state text NOT NULL CHECK (state IN ('issued', 'paid')),
  usd_cents bigint NOT NULL CHECK (usd_cents >= 0),
  issued_at timestamptz NOT NULL DEFAULT slipway_now(),
  paid_at timestamptz,
  UNIQUE (organization_id, month),
  CHECK ((state = 'paid') = (paid_at IS NOT NULL))
);

-- Rounded once, here.
CREATE TABLE invoice_lines (
  invoice_id uuid NOT NULL REFERENCES invoices ON DELETE CASCADE,
  project_id uuid NOT NULL REFERENCES projects,
  product_name text NOT NULL,
  unit text NOT NULL CHECK (unit IN ('vm_hour', 'gb_hour')),
  quantity_ms numeric NOT NULL CHECK (quantity_ms > 0),
  usd_cents bigint NOT NULL CHECK (usd_cents >= 0),
  PRIMARY KEY (invoice_id, project_id, product_name)
);

-- ── Budgets ───────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE budgets (
  project_id uuid PRIMARY KEY REFERENCES projects,
  -- Null: no limit.
  monthly_usd numeric CHECK (monthly_usd >= 0),
  is_hard_stop boolean NOT NULL DEFAULT false
);

-- Each threshold is told once a month.
CREATE TABLE budget_alerts (
  project_id uuid NOT NULL REFERENCES projects,
  month date NOT NULL,
  threshold_percent integer NOT NULL,
  raised_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (project_id, month, threshold_percent)
);

-- ── Payment ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- A link to the billing dashboard: only the hash of what the link contains is kept.
CREATE TABLE billing_sessions (
  token_hash bytea PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations,
  -- The link works no longer than its maker is an owner.
  user_id uuid NOT NULL REFERENCES users,
  expires_at timestamptz NOT NULL
);
CREATE INDEX billing_sessions_by_expiry ON billing_sessions (expires_at);

-- The one that is charged. Never a card number.
CREATE TABLE payment_methods (
  organization_id uuid PRIMARY KEY REFERENCES organizations,
  provider text NOT NULL CHECK (provider IN ('builtin', 'stripe')),
  -- The provider's name for it.
  reference text NOT NULL,
  brand text NOT NULL,
  last4 text NOT NULL CHECK (last4 ~ '^[0-9]{4}$'),
  expires_month integer NOT NULL CHECK (expires_month BETWEEN 1 AND 12),
  expires_year integer NOT NULL CHECK (expires_year BETWEEN 2000 AND 9999),
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);

-- Events of the payment provider that were dealt with: a repeated one does nothing.
CREATE TABLE provider_events (
  id text PRIMARY KEY,
  received_at timestamptz NOT NULL DEFAULT slipway_now()
);
CREATE INDEX provider_events_by_age ON provider_events (received_at);

-- Looks at the provider are numbered as they begin; an older one never overwrites a newer one.
CREATE TABLE provider_syncs (
  organization_id uuid PRIMARY KEY REFERENCES organizations,
  begun bigint NOT NULL,
  applied bigint NOT NULL DEFAULT 0
);

-- What the payment provider is told of each day: the cents by which the month's invoice grew.
CREATE TABLE meter_reports (
  organization_id uuid NOT NULL REFERENCES organizations,
  day date NOT NULL,
  usd_cents bigint NOT NULL CHECK (usd_cents > 0),
  -- disputed: the provider knows another amount, or cannot be told any more; an operator has to look.
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'disputed')),
  attempts integer NOT NULL DEFAULT 0,
  -- When the provider may first have heard of it: it remembers our identifier for a day from then.
  tried_at timestamptz,
  next_attempt_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (organization_id, day)
);
CREATE INDEX meter_reports_due ON meter_reports (next_attempt_at) WHERE state = 'pending';

-- ── Webhooks ──────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE webhooks (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  url text NOT NULL,
  -- Names, or beginnings that end in *; empty means all.
  event_types text[] NOT NULL,
  state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused')),
  -- It gets the events after this position.
  since_position bigint NOT NULL,
  -- Since when no attempt has succeeded.
  failing_since timestamptz,
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);
CREATE INDEX webhooks_by_project ON webhooks (project_id, id DESC);

-- Kept readable, since every delivery is signed with it. A replaced one signs beside its successor until it expires.
CREATE TABLE webhook_secrets (
  webhook_id uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
  secret text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  expires_at timestamptz,
  PRIMARY KEY (webhook_id, secret)
);
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (webhook_id) WHERE expires_at IS NULL;

CREATE TABLE webhook_deliveries (
  id uuid PRIMARY KEY,
  -- The order of the events; one resource's go out one after the other.
  seq bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  webhook_id uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
  event_id uuid NOT NULL REFERENCES events (id) ON DELETE CASCADE,
  event_type text NOT NULL,
  resource_id text NOT NULL,
  -- Asked for by somebody (a test, a replay): outside the order.
  is_direct boolean NOT NULL DEFAULT false,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts integer NOT NULL DEFAULT 0,
  response_status integer NOT NULL DEFAULT 0,
  error text NOT NULL DEFAULT '',
  -- Null when it is over, and while the webhook is paused.
  next_attempt_at timestamptz,
  lease_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  completed_at timestamptz,
  CHECK ((state = 'pending') = (completed_at IS NULL))
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_attempt_at) WHERE state = 'pending' AND next_attempt_at IS NOT NULL;
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook_id, resource_id, seq) WHERE state = 'pending' AND NOT is_direct;
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, seq DESC);
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (event_id);
CREATE UNIQUE INDEX webhook_deliveries_once ON webhook_deliveries (webhook_id, event_id) WHERE NOT is_direct;

-- Events up to here have their deliveries.
CREATE TABLE webhook_cursor (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  position bigint NOT NULL DEFAULT 0
);
INSERT INTO webhook_cursor DEFAULT VALUES;
