-- An operation's time limit is decided where it runs (its definition, and [operations] vm_deadline_s). The column stays
-- for servers of the version before, which read it while a rolling restart is under way.
ALTER TABLE operations ALTER COLUMN deadline_at SET DEFAULT slipway_now() + interval '15 minutes';
