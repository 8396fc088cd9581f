-- ── Readiness ─────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE readiness (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  checked_at timestamptz NOT NULL DEFAULT 'epoch'
);
COMMENT ON TABLE readiness IS
  'One row, which a readiness check writes: a database that answers reads may still refuse writes.';
INSERT INTO readiness DEFAULT VALUES;

-- ── Clock ─────────────────────────────────────────────────────────────────────────────────────────────────────────

ALTER TABLE clock
  -- How far the time of the service is ahead of PostgreSQL's clock, because that clock went back.
  ADD COLUMN ahead interval NOT NULL DEFAULT '0',
  -- The latest time that a process has recorded, without the shift. Earlier times do not come again.
  ADD COLUMN latest timestamptz NOT NULL DEFAULT 'epoch',
  -- The latest step of PostgreSQL's clock that was long enough for an alert: when, and how far. Negative: it went back.
  ADD COLUMN stepped_at timestamptz,
  ADD COLUMN step interval;
COMMENT ON TABLE clock IS
  'One row: how far the time of the service differs from the time of the database. Tests and local services change '
  'shift and frozen_at; leases, deadlines, expiry and usage intervals follow. The other columns keep the time from '
  'going back with PostgreSQL''s clock: workers record it every second or two.';

CREATE OR REPLACE VIEW moment AS
SELECT date_trunc('milliseconds', coalesce(frozen_at, greatest(statement_timestamp() + ahead, latest) + shift)) AS now
FROM clock;

-- ── Meters ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- Also moves the start of a meter to the end of the previous one, if the time went back: the tenant pays no time twice.
CREATE OR REPLACE FUNCTION add_up_earlier_meters() RETURNS trigger LANGUAGE plpgsql AS
$$
DECLARE
  latest usage_intervals;
BEGIN
  NEW.earlier_usd_ms := 0;
  SELECT * INTO latest FROM usage_intervals WHERE resource_id = NEW.resource_id ORDER BY id DESC LIMIT 1;
  IF NOT FOUND THEN RETURN NEW; END IF;
  IF upper_inf(NEW.period) AND lower(NEW.period) < upper(latest.period) THEN
    NEW.period := tstzrange(upper(latest.period), NULL);
  END IF;
  -- Under this lock, which count_meter takes at the commit, no other transaction changes prices.
  PERFORM pg_advisory_xact_lock_shared(7102021);
  NEW.earlier_usd_ms := latest.earlier_usd_ms + metered_cost(latest.product_name, latest.quantity, latest.period);
  RETURN NEW;
END
$$;

-- The time of the spending includes the ends of the meter, which are later than now if the time went back.
CREATE OR REPLACE FUNCTION count_meter() RETURNS trigger LANGUAGE plpgsql AS
$$
DECLARE
  project uuid := coalesce(NEW.project_id, OLD.project_id);
  spending project_spending;
  moment timestamptz;
  month_start timestamptz := date_trunc('month', slipway_now(), 'UTC');
BEGIN
  -- An interval that ended before this month does not change its cost.
  IF NOT coalesce(upper_inf(NEW.period) OR upper(NEW.period) > month_start, false)
     AND NOT coalesce(upper_inf(OLD.period) OR upper(OLD.period) > month_start, false) THEN RETURN NULL; END IF;
  PERFORM pg_advisory_xact_lock_shared(7102021);
  INSERT INTO project_spending (project_id, at) VALUES (project, slipway_now()) ON CONFLICT DO NOTHING;
  SELECT * INTO STRICT spending FROM project_spending WHERE project_id = project FOR NO KEY UPDATE;
  moment := greatest(spending.at, slipway_now(), lower(NEW.period), upper(NEW.period));
  UPDATE project_spending
  SET at = moment,
      spent_usd_ms = spent_by(spending, moment)
        + metered_cost(NEW.product_name, NEW.quantity, NEW.period * month_until(moment))
        - metered_cost(OLD.product_name, OLD.quantity, OLD.period * month_until(moment)),
      usd_per_hour = usd_per_hour
        + metered_rate(NEW.product_name, NEW.quantity, NEW.period, moment)
        - metered_rate(OLD.product_name, OLD.quantity, OLD.period, moment)
  WHERE project_id = project;
  RETURN NULL;
END
$$;
