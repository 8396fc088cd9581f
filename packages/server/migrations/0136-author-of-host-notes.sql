-- When the note of a host was last changed, and the actor who changed it. Notes from before this migration have neither.
ALTER TABLE hosts
  ADD COLUMN note_at timestamptz,
  ADD COLUMN note_by text NOT NULL DEFAULT '';
