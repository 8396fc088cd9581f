-- The key that made this key; null if a signed-in user did.
ALTER TABLE access_keys ADD COLUMN parent_id uuid REFERENCES access_keys;
CREATE INDEX access_keys_by_parent ON access_keys (parent_id) WHERE parent_id IS NOT NULL;
