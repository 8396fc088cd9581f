-- Where the caller was who caused an event; '' for what nobody asked for, and for events from before.
ALTER TABLE events ADD COLUMN client_address text NOT NULL DEFAULT '';
COMMENT ON COLUMN events.client_address IS 'By the rules of trusted proxies; shown to admins and above.';

-- What belongs to an organization and to none of its projects.
CREATE INDEX events_by_organization ON events (organization_id, position DESC) WHERE project_id IS NULL;
