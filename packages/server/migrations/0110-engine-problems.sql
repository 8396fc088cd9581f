-- Why the last inspection of the location failed; '' after one that succeeded.
ALTER TABLE locations ADD COLUMN engine_problem text NOT NULL DEFAULT '';

-- Hosts on which an engine found something that an operator has to put right: few of all hosts.
CREATE INDEX hosts_with_problems ON hosts (id)
  WHERE jsonb_typeof(capabilities->'problems') = 'array' AND forgotten_at IS NULL;
