-- Lists of operations show this instead of the request. Scripts are up to 64 KiB each, and a page of 500 operations with
-- scripts would be read from disk for every list. NULL if the request has no script.
ALTER TABLE operations ADD COLUMN listed_request json;

UPDATE operations o
SET listed_request = (SELECT json_object_agg(key, value) FROM json_each(o.request)
                      WHERE key NOT IN ('startup_script', 'shutdown_script'))
WHERE o.kind = 'vm-create'
  AND (o.request -> 'startup_script' IS NOT NULL OR o.request -> 'shutdown_script' IS NOT NULL);

-- Revoked keys are deleted after 90 days.
CREATE INDEX access_keys_revoked ON access_keys (revoked_at) WHERE revoked_at IS NOT NULL;
