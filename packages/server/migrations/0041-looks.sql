-- Looks at a location are counted: a host that told of itself in a look is not lost by that look, however its clock was turned
-- meanwhile.
ALTER TABLE locations ADD COLUMN looks bigint NOT NULL DEFAULT 0;
ALTER TABLE host_reports ADD COLUMN look bigint NOT NULL DEFAULT 0;
