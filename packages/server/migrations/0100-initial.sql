-- The schema of Slipway 0.1.0, by family: clock and helpers; identity; catalogue and fleet; network; compute;
-- billing; events and webhooks; simulated engine; first statistics.
--
-- schema.sql beside this folder is generated and shows the schema after all migrations.

-- ── Clock and helpers ─────────────────────────────────────────────────────────────────────────────────────────────

-- Exclusion constraints over a uuid and a range need GiST operators for uuid.
CREATE EXTENSION IF NOT EXISTS btree_gist;

CREATE TABLE clock (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  shift interval NOT NULL DEFAULT '0',
  -- While this is set, the service's time is fixed at this moment.
  frozen_at timestamptz
);
COMMENT ON TABLE clock IS
  'One row: how far the time of the service differs from the time of the database. Tests and local services change '
  'it; leases, deadlines, expiry and usage intervals follow.';
INSERT INTO clock DEFAULT VALUES;

CREATE VIEW moment AS
SELECT date_trunc('milliseconds', coalesce(frozen_at, statement_timestamp() + shift)) AS now FROM clock;
COMMENT ON VIEW moment IS
  'One row: the current time. Statements that need the time more than once join this view, because each call of '
  'slipway_now() costs a query of its own.';

-- The current time, the same during one statement. It is STABLE, so that indexes on times can be used.
CREATE FUNCTION slipway_now() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT now FROM moment $$;

-- Returns true or aborts the transaction with SQLSTATE SL001. A transaction can therefore send its last statements
-- together with the commit: a result that is not as expected prevents the commit.
CREATE FUNCTION assert_or_abort(is_so boolean, otherwise text) RETURNS boolean LANGUAGE plpgsql AS
$$
BEGIN
  IF is_so THEN RETURN true; END IF;
  RAISE EXCEPTION USING ERRCODE = 'SL001', MESSAGE = otherwise;
END
$$;

CREATE TABLE leases (
  name text PRIMARY KEY,
  holder uuid NOT NULL,
  -- A time of slipway_now(). After it any process may take the task: its holder died, or the next run is due.
  until timestamptz NOT NULL
);
COMMENT ON TABLE leases IS 'Periodic tasks that the processes share. A task has at most one holder at a time.';

CREATE TABLE secret_key (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  id text NOT NULL
);
COMMENT ON TABLE secret_key IS
  'One row: the id of the master key, which encrypts secrets at rest. A process that does not have this key '
  'refuses to start.';

-- ── Identity ──────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE organizations (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  payment_customer_id text NOT NULL DEFAULT '',
  -- never: no payment method was ever added, and the whole API asks for one. declined, removed: only actions that
  -- cost money are refused.
  payment_state text NOT NULL DEFAULT 'never' CHECK (payment_state IN ('never', 'active', 'declined', 'removed')),
  -- When the payment state last changed; null if it never did.
  payment_state_since timestamptz,
  suspended_at timestamptz,
  -- While the organization is suspended, its running VMs are stopped.
  stops_vms boolean NOT NULL DEFAULT false,
  require_totp boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE organizations IS 'Tenants. An organization owns projects and pays for them.';
CREATE INDEX organizations_by_name ON organizations (name);
-- Finds the organization that an event of the payment provider is about.
CREATE INDEX organizations_by_customer ON organizations (payment_customer_id);
CREATE INDEX organizations_stopping ON organizations (id) WHERE stops_vms;
-- Serves the operators' alerts.
CREATE INDEX organizations_unpaid ON organizations (id) WHERE payment_state IN ('declined', 'removed');

CREATE TABLE users (
  id uuid PRIMARY KEY,
  email text NOT NULL CHECK (email = lower(email)),
  email_verified_at timestamptz,
  -- Argon2id; null for users who sign in by single sign-on only.
  password_hash text,
  -- The secret of the second factor, encrypted under the master key. It counts once it is confirmed.
  totp_sealed bytea,
  totp_confirmed_at timestamptz,
  -- The time step of the last accepted code: each code works once.
  totp_last_step bigint NOT NULL DEFAULT 0,
  is_operator boolean NOT NULL DEFAULT false,
  suspended_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE users IS 'People who can sign in.';
-- An e-mail address is unique among users with a password only: single sign-on identifies users by issuer and
-- subject.
CREATE UNIQUE INDEX users_password_email ON users (email) WHERE password_hash IS NOT NULL;
CREATE INDEX users_by_email ON users (email);
CREATE INDEX users_operators ON users (id) WHERE is_operator;

CREATE TABLE user_identities (
  issuer text NOT NULL,
  subject text NOT NULL,
  user_id uuid NOT NULL REFERENCES users,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (issuer, subject)
);
COMMENT ON TABLE user_identities IS
  'Accounts at single sign-on providers and the users they sign in as. The e-mail address plays no part.';
CREATE INDEX user_identities_by_user ON user_identities (user_id);

CREATE TABLE recovery_codes (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  -- The codes are long and random, so that a plain hash is enough.
  code_hash bytea NOT NULL,
  used_at timestamptz,
  PRIMARY KEY (user_id, code_hash)
);
COMMENT ON TABLE recovery_codes IS 'Codes that replace the second factor, each of them once.';

CREATE TABLE memberships (
  organization_id uuid NOT NULL REFERENCES organizations,
  user_id uuid NOT NULL REFERENCES users,
  role text NOT NULL CHECK (role IN ('viewer', 'member', 'admin', 'owner')),
  -- The single sign-on issuer whose claim grants the membership and withdraws it; null if an invitation granted it.
  oidc_issuer text,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (organization_id, user_id)
);
COMMENT ON TABLE memberships IS 'The role of each user in each of their organizations.';
CREATE INDEX memberships_by_user ON memberships (user_id);

CREATE TABLE one_time_codes (
  code_hash bytea PRIMARY KEY,
  purpose text NOT NULL CONSTRAINT one_time_codes_purpose CHECK (purpose IN ('setup', 'reset')),
  user_id uuid REFERENCES users,
  -- The code was sent by mail and shown to no caller: using it proves the address.
  is_mailed boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  expires_at timestamptz NOT NULL,
  used_at timestamptz,
  CONSTRAINT one_time_codes_user CHECK ((purpose = 'setup') = (user_id IS NULL))
);
COMMENT ON TABLE one_time_codes IS
  'Codes that work once: the set-up code of the first operator, and password resets. Only hashes are stored.';
CREATE INDEX one_time_codes_of_user ON one_time_codes (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX one_time_codes_by_expiry ON one_time_codes (expires_at);

CREATE TABLE token_families (
  id uuid PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES users,
  -- The user or a later holder of the session has shown a second factor.
  has_second_factor boolean NOT NULL DEFAULT false,
  -- Where the session was last used, so that its user can recognize it.
  client_address text NOT NULL DEFAULT '',
  user_agent text NOT NULL DEFAULT '',
  last_used_at timestamptz NOT NULL DEFAULT slipway_now(),
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  revoked_at timestamptz
);
COMMENT ON TABLE token_families IS
  'Sessions. A family is one sign-in; revoking it ends all access and refresh tokens that came from it.';
CREATE INDEX token_families_by_user ON token_families (user_id);
CREATE INDEX token_families_by_age ON token_families (created_at);
CREATE INDEX token_families_revoked ON token_families (revoked_at) WHERE revoked_at IS NOT NULL;

CREATE TABLE access_tokens (
  token_hash bytea PRIMARY KEY,
  family_id uuid NOT NULL REFERENCES token_families ON DELETE CASCADE,
  expires_at timestamptz NOT NULL
);
COMMENT ON TABLE access_tokens IS 'Short-lived bearer tokens of sessions. Only hashes are stored.';
CREATE INDEX access_tokens_by_family ON access_tokens (family_id);
CREATE INDEX access_tokens_by_expiry ON access_tokens (expires_at);

CREATE TABLE refresh_tokens (
  token_hash bytea PRIMARY KEY,
  family_id uuid NOT NULL REFERENCES token_families ON DELETE CASCADE,
  expires_at timestamptz NOT NULL,
  spent_at timestamptz,
  -- The tokens that replaced this one, encrypted under a key derived from this token. For 10 s they are returned
  -- again, in case the first response was lost.
  successor_hash bytea,
  successor_sealed bytea
);
COMMENT ON TABLE refresh_tokens IS
  'Tokens that are exchanged, once, for new tokens of the same session. Only hashes are stored.';
CREATE INDEX refresh_tokens_by_family ON refresh_tokens (family_id);
CREATE INDEX refresh_tokens_by_expiry ON refresh_tokens (expires_at);

CREATE TABLE password_failures (
  -- An attempt is counted before the password is checked, and removed by this id if the password was right.
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Empty for an attempt to guess a code, which names no e-mail address.
  email text NOT NULL,
  -- The client: an IPv4 address or an IPv6 /64.
  address text NOT NULL,
  failed_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE password_failures IS 'Failed sign-in attempts. All processes count them together.';
CREATE INDEX password_failures_recent ON password_failures (email, address, failed_at);
CREATE INDEX password_failures_by_address ON password_failures (address, failed_at);
CREATE INDEX password_failures_by_age ON password_failures (failed_at);

CREATE TABLE known_addresses (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  address text NOT NULL,
  signed_in_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (user_id, address)
);
COMMENT ON TABLE known_addresses IS
  'Client addresses from which a user has signed in. The limit of failed attempts per e-mail address does not apply '
  'to them, so that an attacker cannot lock the user out.';
CREATE INDEX known_addresses_by_age ON known_addresses (signed_in_at);

CREATE TABLE projects (
  id uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations,
  name text NOT NULL,
  labels jsonb NOT NULL DEFAULT '{}',
  version text NOT NULL DEFAULT 'v0.1',
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  -- Deleted projects are kept for usage and audit, and hidden everywhere else.
  deleted_at timestamptz
);
COMMENT ON TABLE projects IS 'A project contains VMs, disks, networks and keys.';
CREATE UNIQUE INDEX projects_name ON projects (organization_id, name) WHERE deleted_at IS NULL;
-- Includes deleted projects: usage and invoices need them.
CREATE INDEX projects_by_organization ON projects (organization_id);

CREATE TABLE access_keys (
  id uuid PRIMARY KEY,
  kind text NOT NULL,
  project_id uuid REFERENCES projects,
  organization_id uuid REFERENCES organizations,
  name text NOT NULL,
  role text NOT NULL,
  -- The first characters of the key, by which people recognize it.
  prefix text NOT NULL,
  -- The secret is long and random, so that a plain SHA-256 of it is enough.
  secret_hash bytea NOT NULL UNIQUE,
  -- The key works from these addresses only; empty: from everywhere.
  allowed_cidrs text[] NOT NULL DEFAULT '{}',
  -- The user who made the key, directly or with another key; null if no user did.
  created_by uuid REFERENCES users,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz,
  -- A key belongs to one project, to one organization or to the operators, and its role fits that.
  CONSTRAINT access_keys_scope CHECK (CASE kind
    WHEN 'project' THEN project_id IS NOT NULL AND organization_id IS NULL AND role IN ('read', 'write')
    WHEN 'organization' THEN project_id IS NULL AND organization_id IS NOT NULL
                             AND role IN ('viewer', 'member', 'admin', 'owner')
    WHEN 'operator' THEN project_id IS NULL AND organization_id IS NULL AND role = 'write'
    ELSE false END)
);
COMMENT ON TABLE access_keys IS
  'API keys of projects, organizations and operators. Only hashes of the secrets are stored.';
CREATE INDEX access_keys_by_project ON access_keys (project_id, id DESC) WHERE revoked_at IS NULL;
CREATE INDEX access_keys_by_organization ON access_keys (organization_id, id DESC)
  WHERE kind = 'organization' AND revoked_at IS NULL;
CREATE INDEX access_keys_of_operators ON access_keys (id DESC) WHERE kind = 'operator' AND revoked_at IS NULL;
CREATE INDEX access_keys_by_creator ON access_keys (created_by) WHERE revoked_at IS NULL;

CREATE TABLE invitations (
  -- Shown as the id of the member until a user accepts.
  id uuid PRIMARY KEY,
  email text NOT NULL CHECK (email = lower(email)),
  -- What is granted: a role in an organization, or the rights of an operator.
  organization_id uuid REFERENCES organizations,
  role text CHECK (role IN ('viewer', 'member', 'admin', 'owner')),
  is_operator boolean NOT NULL DEFAULT false,
  -- Invitations that one link grants together have the same code.
  code_hash bytea NOT NULL,
  -- Shown to the invited person: an e-mail address or the name of a key.
  invited_by text NOT NULL DEFAULT '',
  -- The user who made the invitation, directly or with a key; null if the key belongs to no user.
  maker_user_id uuid REFERENCES users,
  -- The access key that made the invitation; null if the user was signed in.
  maker_key_id uuid REFERENCES access_keys,
  -- The right by which the invitation was made: as owner of the organization, or as operator.
  made_as text NOT NULL CHECK (made_as IN ('owner', 'operator')),
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  expires_at timestamptz NOT NULL,
  CHECK ((organization_id IS NULL) = (role IS NULL)),
  CHECK (organization_id IS NULL OR NOT is_operator),
  CONSTRAINT invitations_maker CHECK (maker_user_id IS NOT NULL OR maker_key_id IS NOT NULL),
  CONSTRAINT invitations_made_as_owner CHECK (made_as = 'operator' OR organization_id IS NOT NULL)
);
COMMENT ON TABLE invitations IS
  'Memberships and operator rights that were offered and not yet accepted. An invitation belongs to the person who '
  'has its code, not to the account with its e-mail address.';
-- At most one open invitation of an address to the same organization or to the operators.
CREATE UNIQUE INDEX invitations_grant
  ON invitations (coalesce(organization_id, '00000000-0000-0000-0000-000000000000'), email, is_operator);
CREATE INDEX invitations_by_organization ON invitations (organization_id);
CREATE INDEX invitations_by_code ON invitations (code_hash);
CREATE INDEX invitations_by_maker ON invitations (maker_user_id);
CREATE INDEX invitations_by_maker_key ON invitations (maker_key_id) WHERE maker_key_id IS NOT NULL;

-- Returns whether the maker of an invitation could still make it: the user is not suspended, has not lost the right, and the
-- key is neither revoked nor expired.
CREATE FUNCTION maker_may_invite(i invitations) RETURNS boolean LANGUAGE sql STABLE AS
$$
  SELECT NOT EXISTS (SELECT FROM users u WHERE u.id = i.maker_user_id AND u.suspended_at IS NOT NULL)
    AND CASE
      WHEN i.maker_key_id IS NOT NULL THEN EXISTS (
        SELECT FROM access_keys k
        WHERE k.id = i.maker_key_id AND k.revoked_at IS NULL
          AND (k.expires_at IS NULL OR k.expires_at > slipway_now())
          AND CASE i.made_as
                WHEN 'operator' THEN k.kind = 'operator'
                ELSE k.kind = 'organization' AND k.organization_id = i.organization_id AND k.role = 'owner'
              END)
      WHEN i.made_as = 'operator' THEN EXISTS (SELECT FROM users u WHERE u.id = i.maker_user_id AND u.is_operator)
      ELSE EXISTS (
        SELECT FROM memberships m
        WHERE m.organization_id = i.organization_id AND m.user_id = i.maker_user_id AND m.role = 'owner')
    END
$$;

CREATE TABLE ssh_keys (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  name text NOT NULL,
  -- The text that the client sent.
  public_key text NOT NULL,
  type text NOT NULL,
  fingerprint text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (project_id, name)
);
COMMENT ON TABLE ssh_keys IS 'Public keys that requests to create a VM name by id. Each VM has its own copies.';
CREATE INDEX ssh_keys_by_project ON ssh_keys (project_id, id);

CREATE TABLE idempotency_keys (
  caller text NOT NULL,
  key_hash bytea NOT NULL,
  request_hash bytea NOT NULL,
  -- Encrypted under a key derived from the Idempotency-Key.
  answer_sealed bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (caller, key_hash)
);
COMMENT ON TABLE idempotency_keys IS
  'Responses with status 200 to requests with an Idempotency-Key. A repeated request gets the same response.';
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- ── Catalogue and fleet ───────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE locations (
  name text PRIMARY KEY,
  region text NOT NULL,
  zone text NOT NULL,
  description text NOT NULL DEFAULT '',
  engine text NOT NULL CHECK (engine IN ('simulated', 'qemu', 'incus')),
  storage text NOT NULL CHECK (storage IN ('shared', 'local')),
  -- Null where VMs cannot have a public address.
  public_ipv4 cidr,
  -- The order in slipway.toml.
  position integer NOT NULL,
  -- When a worker last read the whole inventory of the engine.
  engine_answered_at timestamptz,
  -- Inspections of the location are counted. A host that reported in an inspection is not declared lost by the same
  -- one, even if the clock was changed meanwhile.
  inspections bigint NOT NULL DEFAULT 0,
  -- A large fleet is inspected in parts: the last host of the previous part; '' if the next part starts with the
  -- first host.
  inspected_up_to text NOT NULL DEFAULT ''
);
COMMENT ON TABLE locations IS 'Where VMs can run: one engine with its hosts, images and public addresses.';

CREATE TABLE images (
  id uuid PRIMARY KEY,
  name text NOT NULL UNIQUE CHECK (name LIKE '%:%'),
  description text NOT NULL DEFAULT '',
  tags text[] NOT NULL DEFAULT '{}',
  locations text[] NOT NULL DEFAULT '{}',
  -- What an engine needs to find the image.
  source jsonb NOT NULL DEFAULT '{}',
  -- The engine itself wrote the source when it built or imported the image. A source that came by the API could name
  -- any file, so that no host opens it.
  is_registered boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE images IS 'Operating system images that VMs can boot, and the locations that have them.';

CREATE TABLE hosts (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  location text NOT NULL REFERENCES locations,
  -- The family of all its GPUs; empty until the first report.
  family text NOT NULL DEFAULT '',
  is_schedulable boolean NOT NULL DEFAULT true,
  state text NOT NULL DEFAULT 'down' CHECK (state IN ('up', 'down', 'draining', 'drained')),
  -- Set by an operator, and kept while the host does not report.
  is_draining boolean NOT NULL DEFAULT false,
  capabilities jsonb NOT NULL DEFAULT '{}',
  -- How many GPUs the cores and the memory of the host can serve.
  usable_gpus integer NOT NULL DEFAULT 0,
  -- Triggers on gpus keep these three counts; no statement sets them.
  free_gpus integer NOT NULL DEFAULT 0 CHECK (free_gpus >= 0),
  max_node_free integer NOT NULL DEFAULT 0,
  claimed_gpus integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  -- An operator declared the host lost for good: its reports are refused until it is registered again.
  forgotten_at timestamptz,
  UNIQUE (location, name)
);
COMMENT ON TABLE hosts IS 'Machines that run VMs.';
-- Placement picks the fullest host that fits, then the lowest id (host_lock_*, host_fits_*, availability_list).
CREATE INDEX hosts_open ON hosts (location, family, free_gpus, id) WHERE is_schedulable AND state = 'up';
-- For VMs whose 2 or 4 GPUs should be in one NUMA node: finds hosts that can do that without reading the
-- others.
CREATE INDEX hosts_open_node_2 ON hosts (location, family, free_gpus, id)
  WHERE is_schedulable AND state = 'up' AND max_node_free >= 2;
CREATE INDEX hosts_open_node_4 ON hosts (location, family, free_gpus, id)
  WHERE is_schedulable AND state = 'up' AND max_node_free >= 4;
CREATE INDEX hosts_draining ON hosts (id) WHERE state = 'draining';
-- VMs on hosts that are down are searched all the time; few hosts are down.
CREATE INDEX hosts_down ON hosts (id) WHERE state = 'down';
-- True if a location has hosts whose networks are bridges; see carried_ranges.
CREATE INDEX hosts_with_bridges ON hosts (location) WHERE capabilities ->> 'network' = 'bridge';

CREATE TABLE host_reports (
  host_id uuid PRIMARY KEY REFERENCES hosts ON DELETE CASCADE,
  reported_at timestamptz NOT NULL,
  fingerprint text NOT NULL,
  -- The number of the inspection that reported the host; see locations.inspections.
  inspection bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE host_reports IS
  'The last report of each host. A table of its own, so that a report never waits for a placement that has locked '
  'the row in hosts.';

CREATE TABLE gpus (
  id uuid PRIMARY KEY,
  host_id uuid NOT NULL REFERENCES hosts ON DELETE CASCADE,
  model text NOT NULL,
  pci_address text NOT NULL,
  numa_node integer NOT NULL DEFAULT -1,
  iommu_group integer,
  state text NOT NULL DEFAULT 'free' CHECK (state IN ('free', 'claimed', 'quarantined', 'gone')),
  -- A GPU belongs to at most one VM: there is one column, and a claim is a conditional update of it.
  vm_id uuid,
  quarantined_at timestamptz,
  -- Set by an operator: no reconciler frees the GPU.
  is_held_back boolean NOT NULL DEFAULT false,
  UNIQUE (host_id, pci_address),
  CHECK ((state = 'claimed') = (vm_id IS NOT NULL) OR state = 'gone'),
  CHECK ((state = 'quarantined') = (quarantined_at IS NOT NULL))
);
COMMENT ON TABLE gpus IS
  'The GPUs of all hosts. A GPU that its VM has left is quarantined until the engine shows that it was reset.';
CREATE INDEX gpus_by_vm ON gpus (vm_id) WHERE vm_id IS NOT NULL;
CREATE INDEX gpus_quarantined ON gpus (quarantined_at) WHERE state = 'quarantined';
-- Serves the operators' alerts.
CREATE INDEX gpus_gone ON gpus (host_id) WHERE state = 'gone';

-- Counts the GPUs of every host that a statement has changed.
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

-- ── Network ───────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE networks (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  name text NOT NULL,
  labels jsonb NOT NULL DEFAULT '{}',
  cidr cidr NOT NULL,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (project_id, name),
  EXCLUDE USING gist (project_id WITH =, cidr inet_ops WITH &&)
);
COMMENT ON TABLE networks IS 'Private networks. The ranges of a project do not overlap.';

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
COMMENT ON TABLE subnets IS
  'The part of a network that belongs to one location. The subnets of a network do not overlap.';
CREATE INDEX subnets_by_network ON subnets (network_id, location);

CREATE TABLE carried_ranges (
  -- No foreign key: the subnet may be deleted, and its deletion does not wait for a lock on this row.
  subnet_id uuid PRIMARY KEY,
  location text NOT NULL REFERENCES locations ON DELETE CASCADE,
  cidr cidr NOT NULL,
  CONSTRAINT carried_ranges_once EXCLUDE USING gist (location WITH =, cidr inet_ops WITH &&)
);
COMMENT ON TABLE carried_ranges IS
  'Subnets with VMs in locations whose hosts use bridges. Such a location can route a range to one network only, so '
  'that ranges of different tenants must not overlap there. A row whose subnet has no VMs left is kept until another '
  'subnet needs the range.';

CREATE TABLE firewall_rules (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  network_id uuid NOT NULL REFERENCES networks,
  name text NOT NULL,
  labels jsonb NOT NULL DEFAULT '{}',
  direction text NOT NULL CHECK (direction IN ('ingress', 'egress')),
  action text NOT NULL CHECK (action IN ('allow', 'deny')),
  state text NOT NULL CHECK (state IN ('creating', 'active', 'updating', 'deleting')),
  -- jsonb and arrays keep the order and the spelling of the client.
  sources jsonb NOT NULL,
  source_ports text[] NOT NULL,
  destinations jsonb NOT NULL,
  destination_ports text[] NOT NULL,
  protocols text[] NOT NULL,
  generation bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (project_id, name)
);
COMMENT ON TABLE firewall_rules IS 'Firewall rules of networks.';
CREATE INDEX firewall_rules_by_network ON firewall_rules (network_id);

CREATE TABLE firewall_rule_names (
  project_id uuid NOT NULL REFERENCES projects ON DELETE CASCADE,
  name text NOT NULL,
  rule_id uuid NOT NULL REFERENCES firewall_rules ON DELETE CASCADE,
  PRIMARY KEY (project_id, name)
);
COMMENT ON TABLE firewall_rule_names IS
  'Names that are taken: the name of each rule, and during a rename also the old name, which the rule gets back if '
  'the rename fails. A trigger on firewall_rules writes it.';
CREATE INDEX firewall_rule_names_by_rule ON firewall_rule_names (rule_id);

CREATE FUNCTION hold_rule_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM firewall_rule_names
                 WHERE project_id = NEW.project_id AND name = NEW.name AND rule_id = NEW.id) THEN
    INSERT INTO firewall_rule_names (project_id, name, rule_id) VALUES (NEW.project_id, NEW.name, NEW.id);
  END IF;
  -- No operation is in progress: there is no older name to return to.
  IF NEW.state = 'active' THEN
    DELETE FROM firewall_rule_names WHERE rule_id = NEW.id AND name <> NEW.name;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER firewall_rules_named AFTER INSERT OR UPDATE OF name, state ON firewall_rules
  FOR EACH ROW EXECUTE FUNCTION hold_rule_names();

CREATE TABLE held_addresses (
  address inet PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects ON DELETE CASCADE,
  held_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE held_addresses IS
  'Public addresses of deleted VMs that firewalls of the project may still allow. An address is not given to another '
  'VM until every firewall that was behind at held_at is up to date.';

-- ── Compute ───────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE organization_quotas (
  organization_id uuid NOT NULL REFERENCES organizations,
  name text NOT NULL,
  -- Null means no limit. The next start of a server fills in the configured limit.
  max bigint CHECK (max >= 0),
  -- The sum over the projects, kept by a trigger on quotas. It stays 0 for quotas that projects do not have
  -- (projects, networks, subnets, access_keys, members, webhooks): for these, the rows themselves are counted.
  used bigint NOT NULL DEFAULT 0 CHECK (used >= 0),
  PRIMARY KEY (organization_id, name)
);
COMMENT ON TABLE organization_quotas IS 'What all projects of an organization may use together.';

CREATE TABLE quotas (
  project_id uuid NOT NULL REFERENCES projects,
  name text NOT NULL,
  -- Null: only the limit of the organization applies.
  max bigint CHECK (max >= 0),
  used bigint NOT NULL DEFAULT 0 CHECK (used >= 0),
  PRIMARY KEY (project_id, name)
);
COMMENT ON TABLE quotas IS 'What each project uses and may use.';

CREATE FUNCTION count_organization_quota() RETURNS trigger LANGUAGE plpgsql AS
$$
DECLARE
  owner uuid := (SELECT organization_id FROM projects WHERE id = coalesce(NEW.project_id, OLD.project_id));
  quota text := coalesce(NEW.name, OLD.name);
  change bigint := coalesce(NEW.used, 0) - coalesce(OLD.used, 0);
BEGIN
  IF change = 0 THEN RETURN NULL; END IF;
  UPDATE organization_quotas SET used = used + change WHERE organization_id = owner AND name = quota;
  IF NOT FOUND THEN
    INSERT INTO organization_quotas AS q (organization_id, name, used) VALUES (owner, quota, change)
    ON CONFLICT (organization_id, name) DO UPDATE SET used = q.used + excluded.used;
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER quotas_counted AFTER INSERT OR UPDATE OF used OR DELETE ON quotas
FOR EACH ROW EXECUTE FUNCTION count_organization_quota();

-- The record of a VM as clients see it, as JSON text without its end: the statements that read VMs append the data
-- disks, the scratch space, the price and the cost, which change without the row of the VM
-- (store/compute/vm-view.ts). One concat takes a sixth of the time of json_build_object. IMMUTABLE as a generated
-- column requires: to_json of a text and to_char with this format depend on no setting.
CREATE FUNCTION vm_record(
  id uuid, project_id uuid, type text, state text, ssh_destination text, created_at timestamptz,
  updated_at timestamptz, name text, location text, interface_id uuid, network_id uuid, subnet_id uuid,
  mac_address text, private_address inet, public_address inet, public_address_id uuid, image text,
  expires_at timestamptz, on_expiry text, started_at timestamptz, labels jsonb, description text,
  is_protected boolean, ssh_public_keys text[], ssh_host_key text, startup_script_sha256 text, os_disk_id uuid,
  os_disk_size text
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
    '"virtualization_features":{"nested_virtualization":false},"instance_template_id":"","instance_group_id":"",'
    '"reservation_id":"","image":', to_json(image),
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

CREATE TABLE vms (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  name text NOT NULL,
  labels jsonb NOT NULL DEFAULT '{}',
  description text NOT NULL DEFAULT '',
  -- While this is set, deletions are refused, and expiry only stops the VM.
  is_protected boolean NOT NULL DEFAULT false,
  type text NOT NULL,
  family text NOT NULL,
  gpu_count integer NOT NULL,
  location text NOT NULL REFERENCES locations,
  state text NOT NULL,
  -- When the VM entered its state; null until the first change of state. A change of its name or labels does not
  -- count.
  state_since timestamptz,
  -- When the VM was last powered on or reset; null while it is off.
  started_at timestamptz,
  -- Raised by every operation on the VM and by its deletion; engines refuse calls with an older generation.
  generation bigint NOT NULL DEFAULT 1,
  -- The host on which the VM is defined. It is kept while the VM is off, so that local disks stay reachable.
  host_id uuid REFERENCES hosts,
  image text NOT NULL,
  image_source jsonb NOT NULL DEFAULT '{}',
  ssh_public_keys text[] NOT NULL DEFAULT '{}',
  -- The public half of the host key, as ssh-ed25519 and its data; empty until the VM has one. Simulated guests have none.
  ssh_host_key text NOT NULL DEFAULT '',
  -- The private half, encrypted under the master key, until the guest has it.
  ssh_host_key_sealed bytea,
  startup_script text NOT NULL DEFAULT '',
  startup_script_sha256 text NOT NULL DEFAULT '',
  shutdown_script text NOT NULL DEFAULT '',
  ssh_destination text NOT NULL DEFAULT '',
  os_disk_id uuid NOT NULL,
  -- The size that the client sent, and the same in GiB.
  os_disk_size text NOT NULL DEFAULT '128GiB',
  os_disk_gib integer NOT NULL DEFAULT 128 CHECK (os_disk_gib BETWEEN 128 AND 2048),
  -- Since when the host does not have the OS disk. The VM is neither billed nor started until the disk is seen again.
  os_disk_lost_at timestamptz,
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
  -- The version of the firewall that the rules ask for, and the version that the engine has. While they differ, the
  -- firewall is behind and the reconciler brings it up to date.
  firewall_wanted bigint NOT NULL DEFAULT 1,
  firewall_applied bigint NOT NULL DEFAULT 0,
  -- Since when the firewall is behind, from the earliest change that is missing; null while it is up to date.
  firewall_behind_since timestamptz,
  -- How many attempts in a row have failed to bring it up to date, and when the next one is due.
  firewall_attempts integer NOT NULL DEFAULT 0,
  firewall_next_at timestamptz NOT NULL DEFAULT '-infinity',
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  updated_at timestamptz NOT NULL DEFAULT slipway_now(),
  -- The VM was deleted while its host was down. It is hidden, and keeps its disks and addresses until the host shows
  -- that it no longer exists.
  deleted_at timestamptz,
  -- What a read of the VM needs from other tables; triggers keep it. How many data disks are attached; since when the
  -- VM is billed, null while it is not; and the cost of the intervals before, in USD-milliseconds per hour.
  data_disks integer NOT NULL DEFAULT 0,
  metered_since timestamptz,
  spent_usd_ms numeric NOT NULL DEFAULT 0,
  record text NOT NULL GENERATED ALWAYS AS (vm_record(
    id => id, project_id => project_id, type => type, state => state, ssh_destination => ssh_destination,
    created_at => created_at, updated_at => updated_at, name => name, location => location,
    interface_id => interface_id, network_id => network_id, subnet_id => subnet_id, mac_address => mac_address,
    private_address => private_address, public_address => public_address, public_address_id => public_address_id,
    image => image, expires_at => expires_at, on_expiry => on_expiry, started_at => started_at, labels => labels,
    description => description, is_protected => is_protected, ssh_public_keys => ssh_public_keys,
    ssh_host_key => ssh_host_key, startup_script_sha256 => startup_script_sha256, os_disk_id => os_disk_id,
    os_disk_size => os_disk_size)) STORED,
  CHECK ((public_address IS NULL) = (public_address_id IS NULL)),
  CONSTRAINT vms_private_address UNIQUE (network_id, private_address)
-- A row has about 2.5 kB with its record, and the record is read most: rows of less than a page are not compressed.
) WITH (toast_tuple_target = 8160);
COMMENT ON TABLE vms IS 'Virtual machines.';
CREATE UNIQUE INDEX vms_name ON vms (project_id, name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX vms_public_address ON vms (public_address) WHERE public_address IS NOT NULL;
-- Includes deleted VMs: there are few, and they count before a project or a payment method is removed.
CREATE INDEX vms_by_project ON vms (project_id, id DESC);
CREATE INDEX vms_by_host ON vms (host_id) WHERE host_id IS NOT NULL;
CREATE INDEX vms_by_subnet ON vms (subnet_id);
-- Ordered by project, so that the firewalls of a tenant do not wait behind those of another tenant; then by when they are
-- due.
CREATE INDEX vms_firewall_behind ON vms (location, project_id, firewall_next_at)
  WHERE firewall_applied < firewall_wanted;
CREATE INDEX vms_expiring ON vms (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX vms_ghosts ON vms (id) WHERE deleted_at IS NOT NULL;

CREATE TABLE disks (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  name text NOT NULL,
  labels jsonb NOT NULL DEFAULT '{}',
  description text NOT NULL DEFAULT '',
  -- While this is set, deletions are refused.
  is_protected boolean NOT NULL DEFAULT false,
  type text NOT NULL CHECK (type IN ('persistent-ssd', 'shared-volume')),
  -- The size that the client sent, and the same in GiB.
  size text NOT NULL,
  size_gib bigint NOT NULL CHECK (size_gib > 0),
  location text NOT NULL REFERENCES locations,
  block_size integer NOT NULL CHECK (block_size IN (0, 512, 4096)),
  serial_number text NOT NULL,
  state text NOT NULL CHECK (state IN ('creating', 'available', 'resizing', 'deleting')),
  generation bigint NOT NULL DEFAULT 1,
  -- With local storage: the host that has the disk, from its first attachment on.
  host_id uuid REFERENCES hosts,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  updated_at timestamptz NOT NULL DEFAULT slipway_now(),
  UNIQUE (project_id, name)
);
COMMENT ON TABLE disks IS
  'Persistent disks and shared volumes. OS disks belong to their VM and are not listed here.';
CREATE INDEX disks_by_project ON disks (project_id, id DESC);
-- Finds the disks that are lost with a host.
CREATE INDEX disks_by_host ON disks (host_id) WHERE host_id IS NOT NULL;

CREATE TABLE disk_attachments (
  vm_id uuid NOT NULL REFERENCES vms ON DELETE CASCADE,
  disk_id uuid NOT NULL REFERENCES disks,
  mode text NOT NULL CHECK (mode IN ('read-write', 'read-only')),
  -- A persistent disk has one writer, a shared volume many.
  is_exclusive boolean NOT NULL,
  attached_at timestamptz NOT NULL DEFAULT slipway_now(),
  -- The order in which the disks were attached.
  position integer GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (vm_id, disk_id)
);
COMMENT ON TABLE disk_attachments IS 'Which disks are attached to which VMs.';
CREATE UNIQUE INDEX disk_attachments_one_writer ON disk_attachments (disk_id) WHERE is_exclusive;
CREATE INDEX disk_attachments_by_disk ON disk_attachments (disk_id);

CREATE FUNCTION count_data_disks() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  IF TG_OP = 'INSERT' THEN UPDATE vms SET data_disks = data_disks + 1 WHERE id = NEW.vm_id;
  ELSE UPDATE vms SET data_disks = data_disks - 1 WHERE id = OLD.vm_id;
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER disk_attachments_counted AFTER INSERT OR DELETE ON disk_attachments
FOR EACH ROW EXECUTE FUNCTION count_data_disks();

CREATE TABLE operations (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  -- The name of its definition, such as vm-create.
  kind text NOT NULL,
  name text NOT NULL,
  resource_type text NOT NULL CHECK (resource_type IN ('vm', 'disk', 'firewall_rule')),
  resource_id uuid NOT NULL,
  -- A worker takes only operations of locations that it serves. '' can run on every worker: for firewall rules, each
  -- worker updates the VMs of its own locations.
  location text NOT NULL DEFAULT '',
  -- The generation that its engine calls carry.
  generation bigint NOT NULL,
  -- json and not jsonb: request and result are returned in the order in which they were written.
  request json NOT NULL,
  state text NOT NULL DEFAULT 'IN_PROGRESS' CHECK (state IN ('IN_PROGRESS', 'SUCCEEDED', 'FAILED')),
  result json,
  step integer NOT NULL DEFAULT 0,
  -- Values that a step leaves for later steps.
  scratch jsonb NOT NULL DEFAULT '{}',
  -- The steps that were started: [{name, state, started_at, completed_at}].
  step_log jsonb NOT NULL DEFAULT '[]',
  attempts integer NOT NULL DEFAULT 0,
  last_error text NOT NULL DEFAULT '',
  -- Why the operation is undone: {code, message}.
  failure jsonb,
  is_undoing boolean NOT NULL DEFAULT false,
  -- The undo failed: an operator has to look at it.
  is_stuck boolean NOT NULL DEFAULT false,
  actor text NOT NULL,
  request_id text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT slipway_now(),
  completed_at timestamptz,
  CHECK ((state = 'IN_PROGRESS') = (completed_at IS NULL))
);
COMMENT ON TABLE operations IS
  'Changes that take longer than their request: the record of all operations, finished and unfinished.';
CREATE INDEX operations_by_project ON operations (project_id, id DESC);
CREATE INDEX operations_by_resource ON operations (resource_id, id DESC);
CREATE INDEX operations_by_age ON operations (completed_at) WHERE completed_at IS NOT NULL;
-- Few operations fail or get stuck.
CREATE INDEX operations_failed ON operations (id) WHERE state = 'FAILED';
CREATE INDEX operations_failed_of_project ON operations (project_id, id) WHERE state = 'FAILED';
CREATE INDEX operations_stuck ON operations (id) WHERE is_stuck;
-- Serves the operators' alerts.
CREATE INDEX operations_in_trouble ON operations (id) WHERE state = 'IN_PROGRESS' AND (is_stuck OR attempts >= 10);

CREATE TABLE operation_queue (
  operation_id uuid PRIMARY KEY,
  project_id uuid NOT NULL,
  resource_id uuid NOT NULL,
  is_deletion boolean NOT NULL,
  -- See operations.
  location text NOT NULL,
  -- When the operation is due; while a worker has it, when the lease expires.
  run_at timestamptz NOT NULL DEFAULT slipway_now(),
  -- Identifies the lease of the worker; null while no worker has the operation.
  lease_token uuid,
  is_cancelled boolean NOT NULL DEFAULT false
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);
COMMENT ON TABLE operation_queue IS
  'One small row for each unfinished operation, so that a claim does not depend on the size of the history. A worker '
  'writes an outcome only with the row locked and its lease token still in it. The row is deleted when the operation '
  'ends.';
-- For operation_claim.
CREATE INDEX operation_queue_due ON operation_queue (run_at);
-- For operation_claim_beside, which skips projects that have reached their share, and for the operations of a
-- project.
CREATE INDEX operation_queue_of_project ON operation_queue (project_id, run_at);
-- At most one unfinished deletion and one other unfinished operation per resource.
CREATE UNIQUE INDEX operation_queue_of_resource ON operation_queue (resource_id, is_deletion);

-- ── Billing ───────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE prices (
  product_name text NOT NULL,
  valid_from timestamptz NOT NULL,
  unit text NOT NULL CHECK (unit IN ('vm_hour', 'gb_hour')),
  usd numeric NOT NULL CHECK (usd >= 0),
  PRIMARY KEY (product_name, valid_from)
);
COMMENT ON TABLE prices IS 'Prices of products. A price is valid until the next one of the same product.';

-- Whole milliseconds from one time to another.
CREATE FUNCTION ms_between(since timestamptz, until timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT ((extract(epoch FROM until) - extract(epoch FROM since)) * 1000)::bigint $$;

-- The UTC month of a moment, up to that moment.
CREATE FUNCTION month_until(moment timestamptz) RETURNS tstzrange LANGUAGE sql STABLE AS
$$ SELECT tstzrange(date_trunc('month', moment, 'UTC'), moment) $$;

-- What usage costs in a span, each part at the price of its time, in USD-milliseconds per hour: exact, to be divided
-- by 3,600,000 when shown. Times without a price cost nothing.
CREATE FUNCTION metered_cost(product text, quantity bigint, span tstzrange) RETURNS numeric LANGUAGE sql STABLE AS
$$
  SELECT coalesce(sum(quantity * usd * ms_between(lower(cut), upper(cut))), 0)
  FROM (SELECT usd, span * tstzrange(valid_from, lead(valid_from) OVER (ORDER BY valid_from)) AS cut
        FROM prices WHERE product_name = product) priced
  WHERE NOT isempty(cut)
$$;

-- What a usage interval adds to the cost per hour while it is open.
CREATE FUNCTION metered_rate(product text, quantity bigint, period tstzrange, moment timestamptz) RETURNS numeric
LANGUAGE sql STABLE AS
$$
  SELECT CASE WHEN upper_inf(period) AND lower(period) <= moment
              THEN coalesce(quantity * (SELECT usd FROM prices WHERE product_name = product AND valid_from <= moment
                                        ORDER BY valid_from DESC LIMIT 1), 0)
              ELSE 0 END
$$;

CREATE TABLE usage_intervals (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  location text NOT NULL,
  resource_type text NOT NULL CHECK (resource_type IN ('vm', 'disk')),
  resource_id uuid NOT NULL,
  -- Name and labels of the resource, kept up to date until the day after the interval ended.
  resource_name text NOT NULL DEFAULT '',
  labels jsonb NOT NULL DEFAULT '{}',
  product_name text NOT NULL,
  -- 1 for a VM, GB for a disk.
  quantity bigint NOT NULL CHECK (quantity > 0),
  -- Without an upper bound while the usage continues.
  period tstzrange NOT NULL CHECK (NOT isempty(period) AND lower_inc(period) AND NOT upper_inc(period)),
  -- What the earlier intervals of the same resource cost together, in USD-milliseconds per hour. The latest interval
  -- is therefore enough to know what a resource has cost. Set by a trigger.
  earlier_usd_ms numeric NOT NULL DEFAULT 0,
  CONSTRAINT usage_intervals_no_overlap EXCLUDE USING gist (resource_id WITH =, period WITH &&)
);
COMMENT ON TABLE usage_intervals IS
  'Meters: when which resource was billed, and for how much of which product. They are opened and closed in the '
  'transaction that changes the state of the resource, and never overlap.';
CREATE INDEX usage_intervals_open ON usage_intervals (resource_id) WHERE upper_inf(period);
-- Finds the latest interval of a resource: they are written one after another.
CREATE INDEX usage_intervals_by_resource ON usage_intervals (resource_id, id);
CREATE INDEX usage_intervals_by_project ON usage_intervals (project_id);
CREATE INDEX usage_intervals_by_project_period ON usage_intervals USING gist (project_id, period);
-- Finds what runs now without reading what has ended.
CREATE INDEX usage_intervals_open_of_project ON usage_intervals (project_id) WHERE upper_inf(period);

CREATE FUNCTION add_up_earlier_meters() RETURNS trigger LANGUAGE plpgsql AS
$$
DECLARE
  latest usage_intervals;
BEGIN
  NEW.earlier_usd_ms := 0;
  SELECT * INTO latest FROM usage_intervals WHERE resource_id = NEW.resource_id ORDER BY id DESC LIMIT 1;
  IF NOT FOUND THEN RETURN NEW; END IF;
  -- Under this lock, which count_meter takes at the commit, no other transaction changes prices.
  PERFORM pg_advisory_xact_lock_shared(7102021);
  NEW.earlier_usd_ms := latest.earlier_usd_ms + metered_cost(latest.product_name, latest.quantity, latest.period);
  RETURN NEW;
END
$$;
CREATE TRIGGER usage_intervals_added_up BEFORE INSERT ON usage_intervals
FOR EACH ROW EXECUTE FUNCTION add_up_earlier_meters();

-- Keeps in the row of a VM since when it is billed and what it cost before. The statement that starts VMs writes the
-- same values itself, so that their rows get one new version instead of two.
CREATE FUNCTION keep_vm_meter() RETURNS trigger LANGUAGE plpgsql AS
$$
DECLARE
  since timestamptz;
  spent numeric;
BEGIN
  IF TG_OP = 'DELETE' THEN
    spent := OLD.earlier_usd_ms;
  ELSIF upper_inf(NEW.period) THEN
    since := lower(NEW.period);
    spent := NEW.earlier_usd_ms;
  ELSE
    -- See add_up_earlier_meters.
    PERFORM pg_advisory_xact_lock_shared(7102021);
    spent := NEW.earlier_usd_ms + metered_cost(NEW.product_name, NEW.quantity, NEW.period);
  END IF;
  UPDATE vms SET metered_since = since, spent_usd_ms = spent
  WHERE id = coalesce(NEW.resource_id, OLD.resource_id)
    AND (metered_since IS DISTINCT FROM since OR spent_usd_ms <> spent);
  RETURN NULL;
END
$$;
CREATE TRIGGER usage_intervals_opened AFTER INSERT ON usage_intervals
FOR EACH ROW WHEN (NEW.resource_type = 'vm') EXECUTE FUNCTION keep_vm_meter();
CREATE TRIGGER usage_intervals_closed AFTER UPDATE OF period ON usage_intervals
FOR EACH ROW WHEN (NEW.resource_type = 'vm') EXECUTE FUNCTION keep_vm_meter();
CREATE TRIGGER usage_intervals_withdrawn AFTER DELETE ON usage_intervals
FOR EACH ROW WHEN (OLD.resource_type = 'vm' AND upper_inf(OLD.period)) EXECUTE FUNCTION keep_vm_meter();

CREATE TABLE project_spending (
  project_id uuid PRIMARY KEY REFERENCES projects,
  -- The other columns are valid at this time.
  at timestamptz NOT NULL,
  -- Since the start of the UTC month of that time, in USD-milliseconds per hour.
  spent_usd_ms numeric NOT NULL DEFAULT 0,
  usd_per_hour numeric NOT NULL DEFAULT 0
);
COMMENT ON TABLE project_spending IS
  'Cost of the month to date and cost per hour of each project, so that a budget check reads one row. Triggers on '
  'usage_intervals and prices keep it.';

-- What a project has spent in the month of `moment`, up to that moment. A row of an earlier month only tells the cost
-- per hour.
CREATE FUNCTION spent_by(s project_spending, moment timestamptz) RETURNS numeric LANGUAGE sql STABLE AS
$$
  SELECT CASE WHEN s.at >= date_trunc('month', moment, 'UTC')
              THEN s.spent_usd_ms + s.usd_per_hour * ms_between(s.at, greatest(s.at, moment))
              ELSE s.usd_per_hour * ms_between(date_trunc('month', moment, 'UTC'), moment) END
$$;

-- Changes of intervals hold the advisory lock shared, changes of prices hold it exclusively: a new price applies to
-- every interval that is open at that time.
CREATE FUNCTION count_meter() RETURNS trigger LANGUAGE plpgsql AS
$$
DECLARE
  project uuid := coalesce(NEW.project_id, OLD.project_id);
  spending project_spending;
  moment timestamptz;
  month_start timestamptz := date_trunc('month', slipway_now(), 'UTC');
BEGIN
  -- An interval that ended before this month does not change its cost.
  IF NOT coalesce(upper_inf(NEW.period) OR upper(NEW.period) > month_start, false)
     AND NOT coalesce(upper_inf(OLD.period) OR upper(OLD.period) > month_start, false) THEN RETURN NULL; END IF;
  PERFORM pg_advisory_xact_lock_shared(7102021);
  INSERT INTO project_spending (project_id, at) VALUES (project, slipway_now()) ON CONFLICT DO NOTHING;
  SELECT * INTO STRICT spending FROM project_spending WHERE project_id = project FOR NO KEY UPDATE;
  moment := greatest(spending.at, slipway_now());
  UPDATE project_spending
  SET at = moment,
      spent_usd_ms = spent_by(spending, moment)
        + metered_cost(NEW.product_name, NEW.quantity, NEW.period * month_until(moment))
        - metered_cost(OLD.product_name, OLD.quantity, OLD.period * month_until(moment)),
      usd_per_hour = usd_per_hour
        + metered_rate(NEW.product_name, NEW.quantity, NEW.period, moment)
        - metered_rate(OLD.product_name, OLD.quantity, OLD.period, moment)
  WHERE project_id = project;
  RETURN NULL;
END
$$;
-- Deferred to the commit: this row is the last one that a transaction locks, for the shortest time.
CREATE CONSTRAINT TRIGGER usage_intervals_counted AFTER INSERT OR UPDATE OR DELETE ON usage_intervals
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_meter();

-- Keeps what was spent until now; from now on, each project costs what its open intervals cost at the new prices.
CREATE FUNCTION reprice_spending() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  IF NOT EXISTS (SELECT FROM changed) THEN RETURN NULL; END IF;
  PERFORM pg_advisory_xact_lock(7102021);
  UPDATE project_spending s
  SET at = greatest(s.at, slipway_now()), spent_usd_ms = spent_by(s, slipway_now()), usd_per_hour = r.usd_per_hour
  FROM (SELECT i.project_id, sum(i.quantity * coalesce(p.usd, 0)) AS usd_per_hour
        FROM usage_intervals i
        LEFT JOIN (SELECT DISTINCT ON (product_name) product_name, usd FROM prices
                   WHERE valid_from <= slipway_now() ORDER BY product_name, valid_from DESC) p USING (product_name)
        WHERE upper_inf(i.period) GROUP BY i.project_id) r
  WHERE r.project_id = s.project_id AND r.usd_per_hour <> s.usd_per_hour;
  RETURN NULL;
END
$$;
CREATE TRIGGER prices_inserted AFTER INSERT ON prices REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION reprice_spending();
CREATE TRIGGER prices_updated AFTER UPDATE ON prices REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION reprice_spending();
CREATE TRIGGER prices_deleted AFTER DELETE ON prices REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION reprice_spending();

CREATE TABLE usage_days (
  day date NOT NULL,
  project_id uuid NOT NULL REFERENCES projects,
  location text NOT NULL,
  resource_type text NOT NULL CHECK (resource_type IN ('vm', 'disk')),
  product_name text NOT NULL,
  -- VM-milliseconds or GB-milliseconds.
  quantity_ms bigint NOT NULL CHECK (quantity_ms > 0),
  -- Each part times the price of its time, in USD-milliseconds per hour: exact, to be divided by 3,600,000 when
  -- shown. Null if there was no price.
  cost_usd_ms numeric CHECK (cost_usd_ms >= 0),
  PRIMARY KEY (project_id, day, location, product_name)
);
COMMENT ON TABLE usage_days IS 'Usage of whole UTC days. Written once, when the day is closed.';

CREATE TABLE usage_resource_days (
  project_id uuid NOT NULL REFERENCES projects,
  day date NOT NULL,
  resource_id uuid NOT NULL,
  location text NOT NULL,
  resource_type text NOT NULL CHECK (resource_type IN ('vm', 'disk')),
  product_name text NOT NULL,
  resource_name text NOT NULL,
  labels jsonb NOT NULL,
  -- Quantity and cost as in usage_days.
  quantity_ms bigint NOT NULL CHECK (quantity_ms > 0),
  cost_usd_ms numeric CHECK (cost_usd_ms >= 0),
  PRIMARY KEY (project_id, day, resource_id, product_name)
);
COMMENT ON TABLE usage_resource_days IS
  'The usage of usage_days by resource, with the name and labels that the resource had when the day was closed.';

CREATE TABLE usage_days_closed (
  day date PRIMARY KEY,
  closed_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE usage_days_closed IS 'Days whose usage is final. Days are closed in order.';

CREATE TABLE usage_rollups (
  day date PRIMARY KEY,
  -- usage: projects, a part at a time. organizations: reports to the payment provider, and invoices.
  stage text NOT NULL DEFAULT 'usage' CHECK (stage IN ('usage', 'organizations')),
  -- The last project or organization that is done.
  done_up_to uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);
COMMENT ON TABLE usage_rollups IS
  'How far the closing of a day has come. The row exists from the first part to the last invoice; if a process dies, '
  'another continues here.';

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
COMMENT ON TABLE invoices IS
  'Issued in the transaction that closes the last day of a month. The current month is computed and not stored.';
-- Serves the operators' alerts.
CREATE INDEX invoices_due ON invoices (organization_id) WHERE state = 'issued';

CREATE TABLE invoice_lines (
  invoice_id uuid NOT NULL REFERENCES invoices ON DELETE CASCADE,
  project_id uuid NOT NULL REFERENCES projects,
  product_name text NOT NULL,
  unit text NOT NULL CHECK (unit IN ('vm_hour', 'gb_hour')),
  quantity_ms numeric NOT NULL CHECK (quantity_ms > 0),
  usd_cents bigint NOT NULL CHECK (usd_cents >= 0),
  PRIMARY KEY (invoice_id, project_id, product_name)
);
COMMENT ON TABLE invoice_lines IS
  'The lines of invoices. This is the only place where amounts are rounded to cents.';

CREATE TABLE budgets (
  project_id uuid PRIMARY KEY REFERENCES projects,
  -- Null: no limit.
  monthly_usd numeric CHECK (monthly_usd >= 0),
  is_hard_stop boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE budgets IS 'Monthly budgets of projects.';

CREATE TABLE budget_alerts (
  project_id uuid NOT NULL REFERENCES projects,
  month date NOT NULL,
  threshold_percent integer NOT NULL,
  raised_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (project_id, month, threshold_percent)
);
COMMENT ON TABLE budget_alerts IS 'Budget thresholds that were reported: each once a month.';

CREATE TABLE payment_methods (
  organization_id uuid PRIMARY KEY REFERENCES organizations,
  provider text NOT NULL CHECK (provider IN ('builtin', 'stripe')),
  -- The id at the provider.
  reference text NOT NULL,
  brand text NOT NULL,
  last4 text NOT NULL CHECK (last4 ~ '^[0-9]{4}$'),
  expires_month integer NOT NULL CHECK (expires_month BETWEEN 1 AND 12),
  expires_year integer NOT NULL CHECK (expires_year BETWEEN 2000 AND 9999),
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE payment_methods IS
  'The payment method that each organization is charged by. Card numbers are never stored.';

CREATE TABLE billing_sessions (
  token_hash bytea PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations,
  -- The credential that asked for the link: a session of a user, or a key. The link ends with it, and when the user
  -- is no longer an owner.
  user_id uuid REFERENCES users,
  token_family_id uuid,
  access_key_id uuid,
  -- Set if a key of a project asked: the link shows the figures of that project, and can only add a payment method.
  project_id uuid,
  expires_at timestamptz NOT NULL,
  CHECK (num_nonnulls(user_id, access_key_id) = 1),
  CHECK ((user_id IS NULL) = (token_family_id IS NULL))
);
COMMENT ON TABLE billing_sessions IS
  'Temporary links to the billing dashboard. Only hashes of their tokens are stored.';
CREATE INDEX billing_sessions_by_expiry ON billing_sessions (expires_at);

CREATE TABLE provider_events (
  id text PRIMARY KEY,
  received_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE provider_events IS
  'Events of the payment provider that were processed. A repeated event has no effect.';
CREATE INDEX provider_events_by_age ON provider_events (received_at);

CREATE TABLE provider_syncs (
  organization_id uuid PRIMARY KEY REFERENCES organizations,
  -- The number of the last read that began, and of the newest one that was applied.
  begun bigint NOT NULL,
  applied bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE provider_syncs IS
  'Reads of the payment state at the provider are numbered when they begin, so that an older result never overwrites '
  'a newer one.';

CREATE TABLE meter_reports (
  organization_id uuid NOT NULL REFERENCES organizations,
  day date NOT NULL,
  -- The amount by which the invoice of the month grew on this day.
  usd_cents bigint NOT NULL CHECK (usd_cents > 0),
  -- disputed: the provider has another amount or accepts no more reports for the day; an operator has to look at it.
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'disputed')),
  attempts integer NOT NULL DEFAULT 0,
  -- When the provider may have received the report first. It recognizes our identifier for a day from then on.
  tried_at timestamptz,
  next_attempt_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (organization_id, day)
);
COMMENT ON TABLE meter_reports IS 'What is reported to the payment provider for each day.';
CREATE INDEX meter_reports_due ON meter_reports (next_attempt_at) WHERE state = 'pending';

-- ── Events and webhooks ───────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE events_pending (
  -- The order of writing; for one resource also the order of the commits.
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL,
  organization_id uuid,
  project_id uuid,
  type text NOT NULL,
  resource_type text NOT NULL,
  resource_id text NOT NULL,
  actor text NOT NULL,
  request_id text NOT NULL,
  -- The address of the caller, after the rules for trusted proxies; '' if no request caused the event. Admins and
  -- owners see it.
  client_address text NOT NULL DEFAULT '',
  data jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT slipway_now()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
COMMENT ON TABLE events_pending IS
  'Events are written here in the transaction of the change that they report. After the commit, the stamper gives '
  'them positions and moves them to events. The indexes of that table, which is large, are therefore written once, '
  'and its rows never change.';

CREATE TABLE events (
  -- See events_pending.
  seq bigint,
  id uuid NOT NULL UNIQUE,
  -- Given after the commit, by one stamper at a time: a reader that has read up to a position has missed no earlier
  -- event.
  position bigint NOT NULL UNIQUE,
  organization_id uuid,
  project_id uuid,
  type text NOT NULL,
  resource_type text NOT NULL,
  resource_id text NOT NULL,
  actor text NOT NULL,
  request_id text NOT NULL,
  client_address text NOT NULL DEFAULT '',
  data jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE events IS
  'Everything that happened, in order. Event streams, webhooks and mail read it by position.';
CREATE INDEX events_by_project ON events (project_id, position DESC);
CREATE INDEX events_by_resource ON events (resource_id, position DESC);
-- Events of an organization that belong to none of its projects.
CREATE INDEX events_by_organization ON events (organization_id, position DESC) WHERE project_id IS NULL;
CREATE INDEX events_by_age ON events (created_at);

CREATE VIEW events_written AS
  SELECT seq, position, id, organization_id, project_id, type, resource_type, resource_id, actor, request_id,
         client_address, data, created_at FROM events
  UNION ALL
  SELECT seq, NULL, id, organization_id, project_id, type, resource_type, resource_id, actor, request_id,
         client_address, data, created_at FROM events_pending;
COMMENT ON VIEW events_written IS 'Every event. The position is null until the event has one.';

CREATE TABLE event_counter (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  last_position bigint NOT NULL DEFAULT 0,
  -- Events up to this position were removed because of their age.
  pruned_position bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE event_counter IS 'One row: the last position that was given.';
INSERT INTO event_counter DEFAULT VALUES;

CREATE TABLE webhooks (
  id uuid PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects,
  url text NOT NULL,
  -- Names of event types, or prefixes that end in *; empty means all.
  event_types text[] NOT NULL,
  state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused')),
  -- The webhook gets the events after this position.
  since_position bigint NOT NULL,
  -- When the next delivery is due: the earliest webhook gets the next free slot. Null while there is nothing to
  -- deliver.
  due_at timestamptz,
  -- The last attempt failed or took long, or there was none: such a webhook gets one slot.
  is_slow boolean NOT NULL DEFAULT true,
  -- Failed attempts since the last success, since when no attempt has succeeded, and until when there is a pause
  -- because of it.
  failures integer NOT NULL DEFAULT 0,
  fails_since timestamptz,
  rests_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE webhooks IS 'URLs that receive the events of a project.';
CREATE INDEX webhooks_by_project ON webhooks (project_id, id DESC);
-- Finds the first position that any webhook needs.
CREATE INDEX webhooks_by_since ON webhooks (since_position);
CREATE INDEX webhooks_due ON webhooks (is_slow, due_at) WHERE due_at IS NOT NULL;

CREATE TABLE webhook_secrets (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  webhook_id uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
  -- Encrypted under the master key.
  sealed bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  -- When a replaced secret expires; until then, deliveries are signed with both. Null for the current one.
  expires_at timestamptz
);
COMMENT ON TABLE webhook_secrets IS 'Secrets that sign deliveries. A webhook has exactly one that does not expire.';
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (webhook_id) WHERE expires_at IS NULL;
CREATE INDEX webhook_secrets_of_webhook ON webhook_secrets (webhook_id);

CREATE TABLE webhook_deliveries (
  id uuid PRIMARY KEY,
  -- The order of the events.
  seq bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  webhook_id uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
  -- No foreign key: the event may still be in events_pending. Retention removes deliveries together with their
  -- events.
  event_id uuid NOT NULL,
  event_type text NOT NULL,
  resource_id text NOT NULL,
  -- Requested by a caller (a test, a replay): delivered independently of the order.
  is_direct boolean NOT NULL DEFAULT false,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts integer NOT NULL DEFAULT 0,
  response_status integer NOT NULL DEFAULT 0,
  error text NOT NULL DEFAULT '',
  -- Only the first pending delivery of each resource has a time, and direct ones; during an attempt it is the end of
  -- the lease. Null for all others, and while the webhook is paused.
  next_attempt_at timestamptz,
  leased_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  completed_at timestamptz,
  CHECK ((state = 'pending') = (completed_at IS NULL))
);
COMMENT ON TABLE webhook_deliveries IS
  'Deliveries of events to webhooks. A webhook receives the events of one resource one after another, by seq. A '
  'transaction that adds deliveries or completes one holds the row of the webhook, so that the first pending '
  'delivery of a resource always has a time.';
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_attempt_at)
  WHERE state = 'pending' AND next_attempt_at IS NOT NULL;
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook_id, resource_id, seq)
  WHERE state = 'pending' AND NOT is_direct;
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, seq DESC);
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (event_id);
-- Counts the recent deliveries that callers requested.
CREATE INDEX webhook_deliveries_asked ON webhook_deliveries (webhook_id, created_at) WHERE is_direct;
CREATE UNIQUE INDEX webhook_deliveries_once ON webhook_deliveries (webhook_id, event_id) WHERE NOT is_direct;

-- Retention removes old events with their deliveries, for example after a long pause: the next delivery of the
-- resource is due.
CREATE FUNCTION webhook_queue_advance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM webhooks WHERE id = OLD.webhook_id FOR NO KEY UPDATE;
  UPDATE webhook_deliveries SET next_attempt_at = slipway_now()
  WHERE id = (SELECT d.id FROM webhook_deliveries d
              WHERE d.webhook_id = OLD.webhook_id AND d.resource_id = OLD.resource_id AND d.state = 'pending'
                AND NOT d.is_direct AND d.seq > OLD.seq ORDER BY d.seq LIMIT 1);
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_queue_advance AFTER DELETE ON webhook_deliveries FOR EACH ROW
  WHEN (OLD.state = 'pending' AND NOT OLD.is_direct AND OLD.next_attempt_at IS NOT NULL)
  EXECUTE FUNCTION webhook_queue_advance();

CREATE TABLE webhook_fan_out (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  position bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE webhook_fan_out IS 'One row: the deliveries of events up to this position were written.';
INSERT INTO webhook_fan_out DEFAULT VALUES;

CREATE TABLE mails (
  id uuid PRIMARY KEY,
  recipient text NOT NULL,
  -- Subject and text, encrypted under the master key: the text may contain a code.
  sealed bytea NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  next_attempt_at timestamptz NOT NULL DEFAULT slipway_now(),
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);
COMMENT ON TABLE mails IS
  'Mails to be sent. They are written in the transaction of the change that they report, and deleted when they were '
  'sent or given up.';
CREATE INDEX mails_due ON mails (next_attempt_at);

CREATE TABLE mail_cursor (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  -- Null until mail is configured: earlier events cause no mail.
  position bigint
);
COMMENT ON TABLE mail_cursor IS 'One row: the mails for events up to this position were written.';
INSERT INTO mail_cursor DEFAULT VALUES;

-- ── Simulated engine ──────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE simulated_hosts (
  location text NOT NULL,
  name text NOT NULL,
  model text NOT NULL,
  gpu_count integer NOT NULL,
  is_lost boolean NOT NULL DEFAULT false,
  PRIMARY KEY (location, name)
);
COMMENT ON TABLE simulated_hosts IS
  'Hosts of the simulated engine. The simulated_ tables are the state of an engine and not of the control plane: '
  'nothing else refers to them.';

CREATE TABLE simulated_vms (
  id uuid PRIMARY KEY,
  location text NOT NULL,
  host text NOT NULL,
  generation bigint NOT NULL,
  is_removed boolean NOT NULL DEFAULT false,
  removed_at timestamptz,
  spec jsonb NOT NULL,
  -- The last power command. The actual state follows from the time: on means booting until ready_at, shutdown means
  -- off from ready_at.
  power text NOT NULL DEFAULT 'off' CHECK (power IN ('off', 'on', 'shutdown', 'crashed')),
  ready_at timestamptz,
  gpus text[] NOT NULL DEFAULT '{}',
  firewall jsonb NOT NULL DEFAULT '[]',
  firewall_generation bigint NOT NULL DEFAULT 0,
  serial text NOT NULL DEFAULT ''
);
COMMENT ON TABLE simulated_vms IS
  'VMs of the simulated engine. They are kept after their removal, so that a late call with an older generation is '
  'refused.';
CREATE INDEX simulated_vms_by_host ON simulated_vms (location, host) WHERE NOT is_removed;
CREATE INDEX simulated_vms_by_removal ON simulated_vms (removed_at) WHERE is_removed;

CREATE TABLE simulated_gpu_resets (
  location text NOT NULL,
  host text NOT NULL,
  pci_address text NOT NULL,
  clean_at timestamptz NOT NULL,
  PRIMARY KEY (location, host, pci_address)
);
COMMENT ON TABLE simulated_gpu_resets IS 'When the reset of a simulated GPU that a VM has left is done.';

CREATE TABLE simulated_disks (
  id uuid PRIMARY KEY,
  location text NOT NULL,
  generation bigint NOT NULL,
  is_removed boolean NOT NULL DEFAULT false,
  size_gib bigint NOT NULL
);
COMMENT ON TABLE simulated_disks IS 'Disks of the simulated engine. They are kept after their removal, like VMs.';

CREATE TABLE simulated_faults (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  method text NOT NULL,
  resource_id uuid,
  -- fail, reject: return an error and do nothing. lie: do it and return an error. forget: return success and do
  -- nothing. delay: wait first.
  kind text NOT NULL CHECK (kind IN ('fail', 'reject', 'lie', 'forget', 'delay')),
  delay_ms integer NOT NULL DEFAULT 0,
  -- How many calls it still affects.
  remaining integer NOT NULL DEFAULT 1
);
COMMENT ON TABLE simulated_faults IS 'Faults that tests ask the simulated engine for.';

-- ── First statistics ──────────────────────────────────────────────────────────────────────────────────────────────

-- Nearly all VMs are not deleted and nearly all keys are not revoked. PostgreSQL learns that when it first analyzes
-- the table; until then it assumes that one row in 200 is null, and reads a whole partial index to look up one id.
-- PostgreSQL 18 is the first version that can be told.
DO
$$
DECLARE
  mostly_null record;
BEGIN
  IF current_setting('server_version_num')::integer < 180000 THEN RETURN; END IF;
  FOR mostly_null IN VALUES ('vms', 'deleted_at'), ('access_keys', 'revoked_at')
  LOOP
    BEGIN
      PERFORM pg_restore_attribute_stats('schemaname', current_schema()::text, 'relname', mostly_null.column1,
                                         'attname', mostly_null.column2, 'inherited', false, 'null_frac', 1::real);
    EXCEPTION WHEN OTHERS THEN
      -- Statistics are an optimization: the server starts without them.
      RAISE WARNING 'no first statistics of %: %', mostly_null.column1, SQLERRM;
    END;
  END LOOP;
END
$$;
