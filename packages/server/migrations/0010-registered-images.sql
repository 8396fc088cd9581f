-- A source that an engine wrote down itself names files of a host; one that came by the API names whatever its author
-- likes, and no host opens it.
ALTER TABLE images ADD COLUMN is_registered boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN images.is_registered IS 'The source is an engine''s own, from building or importing the image.';

UPDATE images SET is_registered = true
 WHERE source->>'file' ~ '^[0-9a-f]{64}\.img$' OR source->>'folder' ~ '^mini-[a-z0-9_]+-[0-9a-f]{12}$';
