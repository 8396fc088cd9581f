-- GPUs can be held: they belong to a waiting request or a reservation and no other VM gets them. `held_for` is the id of
-- the holder. For a reservation it stays while the GPU is claimed or quarantined.
ALTER TABLE gpus
  ADD held_for uuid,
  ADD held_kind text CHECK (held_kind IN ('request', 'reservation', 'operation')),
  -- The VM that had the GPU before its quarantine: a start of the same VM may take the GPU back.
  ADD last_vm_id uuid,
  DROP CONSTRAINT gpus_state_check,
  ADD CONSTRAINT gpus_state_check CHECK (state IN ('free', 'claimed', 'quarantined', 'held', 'gone')),
  ADD CONSTRAINT gpus_held_check CHECK (
    (held_for IS NULL) = (held_kind IS NULL)
    AND (state <> 'held' OR held_for IS NOT NULL AND vm_id IS NULL)
    AND (state NOT IN ('free', 'gone') OR held_for IS NULL)
    AND (state NOT IN ('claimed', 'quarantined') OR held_for IS NULL OR held_kind = 'reservation'));
CREATE INDEX gpus_held ON gpus (held_for) WHERE held_for IS NOT NULL;
CREATE INDEX gpus_quarantined_by_vm ON gpus (last_vm_id) WHERE state = 'quarantined';

-- A held GPU counts as claimed, for the share of cores and memory.
CREATE OR REPLACE FUNCTION count_host_gpus() RETURNS trigger LANGUAGE plpgsql AS $$
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
             count(*) FILTER (WHERE g.state IN ('claimed', 'held') OR g.vm_id IS NOT NULL) AS claimed,
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

CREATE TABLE capacity_requests (
  id uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations,
  project_id uuid NOT NULL REFERENCES projects,
  state text NOT NULL DEFAULT 'waiting'
    CHECK (state IN ('waiting', 'held', 'fulfilled', 'expired', 'cancelled', 'failed')),
  on_available text NOT NULL CHECK (on_available IN ('create', 'hold')),
  hold_seconds integer NOT NULL,
  -- The body of the request, with exactly one of `vm` and `start_vm_id`.
  body json NOT NULL,
  start_vm_id uuid,
  family text NOT NULL,
  gpus integer NOT NULL CHECK (gpus > 0),
  blocked_by text NOT NULL DEFAULT '' CHECK (blocked_by IN ('', 'quota', 'budget', 'payment', 'suspended')),
  labels jsonb NOT NULL DEFAULT '{}',
  until timestamptz NOT NULL,
  -- Where the request was granted: its GPUs are on this host.
  location text NOT NULL DEFAULT '',
  held_host uuid,
  held_until timestamptz,
  granted_at timestamptz,
  resource_id uuid,
  operation_id uuid,
  -- The places of a granted request, which gets them back if its VM does not boot.
  old_places json,
  -- How often a VM was created and did not boot.
  failed_boots integer NOT NULL DEFAULT 0,
  error json,
  -- The first estimate, by which the published hit rate is measured.
  first_latest_at timestamptz,
  actor text NOT NULL,
  request_id text NOT NULL,
  -- When the service next has to act on the request; null for a request that has ended.
  due_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT slipway_now(),
  updated_at timestamptz NOT NULL DEFAULT slipway_now(),
  CHECK ((state = 'held') = (held_until IS NOT NULL)),
  CHECK ((state = 'held') = (held_host IS NOT NULL)),
  CHECK ((state IN ('waiting', 'held')) = (due_at IS NOT NULL))
);
COMMENT ON TABLE capacity_requests IS 'Requests for VMs that wait until GPUs are free.';
CREATE INDEX capacity_requests_by_project ON capacity_requests (project_id, id);
CREATE INDEX capacity_requests_due ON capacity_requests (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX capacity_requests_open ON capacity_requests (organization_id, id) WHERE due_at IS NOT NULL;
CREATE INDEX capacity_requests_unfinished ON capacity_requests (id) WHERE due_at IS NOT NULL;
CREATE INDEX capacity_requests_by_operation ON capacity_requests (operation_id) WHERE operation_id IS NOT NULL;
CREATE INDEX capacity_requests_by_host ON capacity_requests (held_host) WHERE held_host IS NOT NULL;
CREATE INDEX capacity_requests_ended ON capacity_requests (updated_at) WHERE due_at IS NULL;
CREATE INDEX capacity_requests_estimated ON capacity_requests (updated_at)
  WHERE due_at IS NULL AND first_latest_at IS NOT NULL;
-- A stopped VM waits once.
CREATE UNIQUE INDEX capacity_requests_start ON capacity_requests (start_vm_id) WHERE due_at IS NOT NULL;

CREATE TABLE capacity_lanes (
  location text NOT NULL REFERENCES locations,
  family text NOT NULL,
  -- The turn of the request that was granted last.
  virtual_time bigint NOT NULL DEFAULT 0,
  -- The number of open places; a trigger counts them.
  waiting integer NOT NULL DEFAULT 0 CHECK (waiting >= 0),
  -- The first request, while the free GPUs of one host are held for it until they suffice.
  accumulator uuid UNIQUE REFERENCES capacity_requests,
  target_host uuid,
  accumulating_since timestamptz,
  paused_until timestamptz,
  likely_at timestamptz,
  hit_rate real,
  estimated_at timestamptz,
  -- When the service next has to act on the lane.
  due_at timestamptz,
  PRIMARY KEY (location, family),
  CHECK ((accumulator IS NULL) = (target_host IS NULL)),
  CHECK ((accumulator IS NULL) = (accumulating_since IS NULL))
);
COMMENT ON TABLE capacity_lanes IS 'The queue for the GPUs of one family at one location. A transaction that adds to the queue or frees GPUs locks its row.';

CREATE TABLE capacity_places (
  request_id uuid NOT NULL REFERENCES capacity_requests ON DELETE CASCADE,
  location text NOT NULL,
  family text NOT NULL,
  turn bigint NOT NULL,
  gpus integer NOT NULL,
  -- The host of the local disks; null for any host.
  host_id uuid,
  -- A request that is blocked or held keeps its place, but nothing is offered to it.
  is_open boolean NOT NULL DEFAULT true,
  earliest_at timestamptz,
  likely_at timestamptz,
  latest_at timestamptz,
  basis text NOT NULL DEFAULT 'none' CHECK (basis IN ('expiries', 'history', 'none')),
  estimated_at timestamptz,
  PRIMARY KEY (request_id, location),
  FOREIGN KEY (location, family) REFERENCES capacity_lanes
);
COMMENT ON TABLE capacity_places IS 'The places of unfinished requests in the queues.';
-- In order of the queue, for the first request and the position of one.
CREATE INDEX capacity_places_in_order ON capacity_places (location, family, turn, request_id) WHERE is_open;
-- For the first request of a size, so that requests that do not fit are not read.
CREATE INDEX capacity_places_by_size ON capacity_places (location, family, gpus, turn, request_id)
  WHERE is_open AND host_id IS NULL;
CREATE INDEX capacity_places_by_host ON capacity_places (host_id, gpus, turn, request_id)
  WHERE is_open AND host_id IS NOT NULL;
CREATE INDEX capacity_places_by_lane ON capacity_places (location, family);

CREATE FUNCTION count_waiting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' AND OLD.is_open THEN
    UPDATE capacity_lanes SET waiting = waiting - 1 WHERE location = OLD.location AND family = OLD.family;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.is_open THEN
    UPDATE capacity_lanes SET waiting = waiting + 1 WHERE location = NEW.location AND family = NEW.family;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER capacity_places_added AFTER INSERT OR DELETE ON capacity_places
  FOR EACH ROW EXECUTE FUNCTION count_waiting();
CREATE TRIGGER capacity_places_changed AFTER UPDATE OF is_open ON capacity_places
  FOR EACH ROW WHEN (OLD.is_open <> NEW.is_open) EXECUTE FUNCTION count_waiting();

CREATE TABLE capacity_turns (
  organization_id uuid NOT NULL REFERENCES organizations,
  location text NOT NULL,
  family text NOT NULL,
  last_turn bigint NOT NULL DEFAULT 0,
  -- After a hold that was not claimed, the organization gets none for an hour.
  no_hold_until timestamptz,
  PRIMARY KEY (location, family, organization_id),
  FOREIGN KEY (location, family) REFERENCES capacity_lanes
);
COMMENT ON TABLE capacity_turns IS 'The last turn of each organization in a queue, so that organizations alternate.';
