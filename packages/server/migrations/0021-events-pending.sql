-- Events are written here with the change that they tell of. The stamper moves them on into `events`, with their positions:
-- each index of that table, which is large, is written once, and none of its rows is ever changed.
CREATE TABLE events_pending (
  -- Order of writing; for one resource that is also the order of commit.
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id uuid NOT NULL,
  organization_id uuid,
  project_id uuid,
  type text NOT NULL,
  resource_type text NOT NULL,
  resource_id text NOT NULL,
  actor text NOT NULL,
  request_id text NOT NULL,
  -- By the rules of trusted proxies; shown to admins and above.
  client_address text NOT NULL DEFAULT '',
  data jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT slipway_now()
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
COMMENT ON TABLE events_pending IS 'Committed events that have no position yet; emptied by the stamper.';

-- A delivery may be asked for in the transaction that writes its event. Retention takes deliveries with their events.
ALTER TABLE webhook_deliveries DROP CONSTRAINT webhook_deliveries_event_id_fkey;

INSERT INTO events_pending (seq, id, organization_id, project_id, type, resource_type, resource_id, actor, request_id,
                            client_address, data, created_at) OVERRIDING SYSTEM VALUE
SELECT seq, id, organization_id, project_id, type, resource_type, resource_id, actor, request_id, client_address, data,
       created_at
FROM events WHERE position IS NULL;
DELETE FROM events WHERE position IS NULL;
SELECT setval(pg_get_serial_sequence('events_pending', 'seq'),
              greatest((SELECT max(seq) FROM events), (SELECT max(seq) FROM events_pending), 1));

DROP INDEX events_unstamped;
ALTER TABLE events DROP CONSTRAINT events_pkey;
ALTER TABLE events
  ALTER COLUMN seq DROP IDENTITY, ALTER COLUMN seq DROP NOT NULL, ALTER COLUMN position SET NOT NULL;

CREATE VIEW events_written AS
  SELECT seq, position, id, organization_id, project_id, type, resource_type, resource_id, actor, request_id,
         client_address, data, created_at FROM events
  UNION ALL
  SELECT seq, NULL, id, organization_id, project_id, type, resource_type, resource_id, actor, request_id,
         client_address, data, created_at FROM events_pending;
COMMENT ON VIEW events_written IS 'Every event, with its position if it has one yet.';
