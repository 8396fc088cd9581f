-- The bearer token of a signing key, encrypted with the master key. The secret that signs requests is derived from
-- it. Null for other keys, of which only a hash is stored.
ALTER TABLE access_keys ADD COLUMN signing_sealed bytea;

-- A signing key is found by its access key id.
CREATE UNIQUE INDEX access_keys_signing ON access_keys (prefix) WHERE signing_sealed IS NOT NULL;
