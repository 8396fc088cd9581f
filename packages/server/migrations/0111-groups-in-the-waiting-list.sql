-- A capacity request can be for a whole instance group: its GPUs are on several hosts.
ALTER TABLE capacity_requests
  -- The hosts with the GPUs that are held for the request.
  ADD held_hosts uuid[] NOT NULL DEFAULT '{}',
  -- The time to live of its VMs, for the estimates of the requests behind it.
  ADD ttl_seconds integer,
  -- The quota that it takes when it is granted, by name.
  ADD amounts jsonb NOT NULL DEFAULT '{}';
UPDATE capacity_requests SET held_hosts = ARRAY[held_host] WHERE held_host IS NOT NULL;
UPDATE capacity_requests SET ttl_seconds = (body -> 'vm' ->> 'ttl_seconds')::integer WHERE due_at IS NOT NULL;
UPDATE capacity_requests SET amounts = jsonb_build_object(family || '_gpus', gpus) WHERE due_at IS NOT NULL;
ALTER TABLE capacity_requests DROP held_host, ADD CHECK ((state = 'held') = (held_hosts <> '{}'));
CREATE INDEX capacity_requests_by_host ON capacity_requests USING gin (held_hosts) WHERE state = 'held';

-- A place is for a number of VMs with the same number of GPUs.
ALTER TABLE capacity_places
  ADD vms integer NOT NULL DEFAULT 1 CHECK (vms > 0),
  -- Each VM on a host of its own.
  ADD is_spread boolean NOT NULL DEFAULT false;
DROP INDEX capacity_places_by_size;
DROP INDEX capacity_places_by_host;
-- For the first request of a size, so that requests that do not fit are not read.
CREATE INDEX capacity_places_by_size ON capacity_places (location, family, gpus, turn, request_id)
  WHERE is_open AND vms = 1 AND host_id IS NULL;
CREATE INDEX capacity_places_by_host ON capacity_places (host_id, gpus, turn, request_id)
  WHERE is_open AND vms = 1 AND host_id IS NOT NULL;
-- For the first request that may accumulate GPUs on one host, and for the first groups.
CREATE INDEX capacity_places_of_vms ON capacity_places (location, family, turn, request_id) WHERE is_open AND vms = 1;
CREATE INDEX capacity_places_of_groups ON capacity_places (location, family, turn, request_id) WHERE is_open AND vms > 1;
