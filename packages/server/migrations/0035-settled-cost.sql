-- What a VM has cost is asked for with every read of it. The sum of its earlier meters is kept with each meter, so that
-- the latest one says it all, however often the VM was stopped and started.

ALTER TABLE usage_intervals ADD earlier_usd_ms numeric NOT NULL DEFAULT 0;
COMMENT ON COLUMN usage_intervals.earlier_usd_ms IS
  'What the earlier meters of the same resource cost together, in USD-milliseconds per hour.';

-- This finds the latest meter of a resource: they are written one after another.
CREATE INDEX usage_intervals_by_resource ON usage_intervals (resource_id, id);

CREATE FUNCTION add_up_earlier_meters() RETURNS trigger LANGUAGE plpgsql AS
$$
DECLARE
  latest usage_intervals;
BEGIN
  NEW.earlier_usd_ms := 0;
  SELECT * INTO latest FROM usage_intervals WHERE resource_id = NEW.resource_id ORDER BY id DESC LIMIT 1;
  IF NOT FOUND THEN RETURN NEW; END IF;
  -- With this lock, which `count_meter` takes at the commit, no price of the earlier meter's time is still to come.
  PERFORM pg_advisory_xact_lock_shared(7102021);
  NEW.earlier_usd_ms := latest.earlier_usd_ms + metered_cost(latest.product_name, latest.quantity, latest.period);
  RETURN NEW;
END
$$;
CREATE TRIGGER usage_intervals_added_up BEFORE INSERT ON usage_intervals
FOR EACH ROW EXECUTE FUNCTION add_up_earlier_meters();

UPDATE usage_intervals i SET earlier_usd_ms = s.earlier_usd_ms
FROM (SELECT id, sum(metered_cost(product_name, quantity, period)) FILTER (WHERE NOT upper_inf(period))
                   OVER (PARTITION BY resource_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
                   AS earlier_usd_ms
      FROM usage_intervals
      WHERE resource_id IN (SELECT resource_id FROM usage_intervals GROUP BY resource_id HAVING count(*) > 1)) s
WHERE s.id = i.id AND s.earlier_usd_ms <> 0;
