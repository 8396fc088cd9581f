-- Why the last inspection of the location failed; '' after one that succeeded.
ALTER TABLE locations ADD COLUMN engine_problem text NOT NULL DEFAULT '';
