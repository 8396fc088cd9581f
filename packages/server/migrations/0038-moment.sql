-- The time, for statements that join it as a table of one row. A call of slipway_now() in them is a statement of its own each
-- time; both say the same.
CREATE VIEW moment AS
SELECT date_trunc('milliseconds', coalesce(frozen_at, statement_timestamp() + shift)) AS now FROM clock;

CREATE OR REPLACE FUNCTION slipway_now() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT now FROM moment $$;
