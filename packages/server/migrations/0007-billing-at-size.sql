-- ── What a project has spent ──────────────────────────────────────────────────────────────────────────────────────

-- Month to date and rate of each project, so that a budget is looked at by one row, however much runs. Triggers keep it
-- from the meters and the prices: nobody who opens or closes a meter can forget it, whatever version they are.
CREATE TABLE project_spending (
  project_id uuid PRIMARY KEY REFERENCES projects,
  -- The other columns are true at this moment.
  at timestamptz NOT NULL,
  -- Since the UTC month of that moment began, in USD-milliseconds per hour: exact, to be divided by 3,600,000 when shown.
  spent_usd_ms numeric NOT NULL DEFAULT 0,
  usd_per_hour numeric NOT NULL DEFAULT 0
);

CREATE FUNCTION ms_between(since timestamptz, until timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT ((extract(epoch FROM until) - extract(epoch FROM since)) * 1000)::bigint $$;

CREATE FUNCTION month_until(moment timestamptz) RETURNS tstzrange LANGUAGE sql STABLE AS
$$ SELECT tstzrange(date_trunc('month', moment, 'UTC'), moment) $$;

-- The month of `moment` up to it. A row from an earlier month says only what the project costs an hour.
CREATE FUNCTION spent_by(s project_spending, moment timestamptz) RETURNS numeric LANGUAGE sql STABLE AS
$$
  SELECT CASE WHEN s.at >= date_trunc('month', moment, 'UTC')
              THEN s.spent_usd_ms + s.usd_per_hour * ms_between(s.at, greatest(s.at, moment))
              ELSE s.usd_per_hour * ms_between(date_trunc('month', moment, 'UTC'), moment) END
$$;

-- What a meter costs in a span, each part at the price of its time; nothing where no price was set.
CREATE FUNCTION metered_cost(product text, quantity bigint, span tstzrange) RETURNS numeric LANGUAGE sql STABLE AS
$$
  SELECT coalesce(sum(quantity * usd * ms_between(lower(cut), upper(cut))), 0)
  FROM (SELECT usd, span * tstzrange(valid_from, lead(valid_from) OVER (ORDER BY valid_from)) AS cut
        FROM prices WHERE product_name = product) priced
  WHERE NOT isempty(cut)
$$;

-- What a meter adds to the costs of an hour while it is open.
CREATE FUNCTION metered_rate(product text, quantity bigint, period tstzrange, moment timestamptz) RETURNS numeric
LANGUAGE sql STABLE AS
$$
  SELECT CASE WHEN upper_inf(period) AND lower(period) <= moment
              THEN coalesce(quantity * (SELECT usd FROM prices WHERE product_name = product AND valid_from <= moment
                                        ORDER BY valid_from DESC LIMIT 1), 0)
              ELSE 0 END
$$;

-- Meters hold this lock shared, whoever changes prices holds it alone: a price finds every meter, or is found by it.
CREATE FUNCTION count_meter() RETURNS trigger LANGUAGE plpgsql AS
$$
DECLARE
  project uuid := coalesce(NEW.project_id, OLD.project_id);
  spending project_spending;
  moment timestamptz;
  month_start timestamptz := date_trunc('month', slipway_now(), 'UTC');
BEGIN
  -- What ended before the month changes nothing of it.
  IF NOT coalesce(upper_inf(NEW.period) OR upper(NEW.period) > month_start, false)
     AND NOT coalesce(upper_inf(OLD.period) OR upper(OLD.period) > month_start, false) THEN RETURN NULL; END IF;
  PERFORM pg_advisory_xact_lock_shared(7102021);
  INSERT INTO project_spending (project_id, at) VALUES (project, slipway_now()) ON CONFLICT DO NOTHING;
  SELECT * INTO STRICT spending FROM project_spending WHERE project_id = project FOR NO KEY UPDATE;
  moment := greatest(spending.at, slipway_now());
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

-- At the commit: the row is the last that a transaction locks, and for the shortest time.
CREATE CONSTRAINT TRIGGER usage_intervals_counted AFTER INSERT OR UPDATE OR DELETE ON usage_intervals
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_meter();

-- What was spent up to now stays; from now on each project costs what its open meters cost at the new prices.
CREATE FUNCTION reprice_spending() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  IF NOT EXISTS (SELECT FROM changed) THEN RETURN NULL; END IF;
  PERFORM pg_advisory_xact_lock(7102021);
  UPDATE project_spending s
  SET at = greatest(s.at, slipway_now()), spent_usd_ms = spent_by(s, slipway_now()), usd_per_hour = r.usd_per_hour
  FROM (SELECT i.project_id, sum(i.quantity * coalesce(p.usd, 0)) AS usd_per_hour
        FROM usage_intervals i
        LEFT JOIN (SELECT DISTINCT ON (product_name) product_name, usd FROM prices
                   WHERE valid_from <= slipway_now() ORDER BY product_name, valid_from DESC) p USING (product_name)
        WHERE upper_inf(i.period) GROUP BY i.project_id) r
  WHERE r.project_id = s.project_id AND r.usd_per_hour <> s.usd_per_hour;
  RETURN NULL;
END
$$;
CREATE TRIGGER prices_inserted AFTER INSERT ON prices REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION reprice_spending();
CREATE TRIGGER prices_updated AFTER UPDATE ON prices REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION reprice_spending();
CREATE TRIGGER prices_deleted AFTER DELETE ON prices REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION reprice_spending();

LOCK TABLE usage_intervals, prices IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO project_spending (project_id, at, spent_usd_ms, usd_per_hour)
SELECT i.project_id, slipway_now(), sum(metered_cost(i.product_name, i.quantity, i.period * month_until(slipway_now()))),
       sum(metered_rate(i.product_name, i.quantity, i.period, slipway_now()))
FROM usage_intervals i
WHERE upper_inf(i.period) OR i.period && month_until(slipway_now())
GROUP BY i.project_id;

-- ── Billing links ─────────────────────────────────────────────────────────────────────────────────────────────────

-- A link ends with the credential that asked for it: a sign-in, or a key. Links from before have only their user.
ALTER TABLE billing_sessions
  ALTER COLUMN user_id DROP NOT NULL,
  ADD COLUMN token_family_id uuid,
  ADD COLUMN access_key_id uuid,
  -- Set when a project's key asked: its link shows the figures of that project, and only adds a payment method.
  ADD COLUMN project_id uuid,
  ADD CHECK (num_nonnulls(user_id, access_key_id) = 1);

-- ── Closing a day ─────────────────────────────────────────────────────────────────────────────────────────────────

-- How far the closing of a day has come; there is a row from its first shard until its last invoice. Whoever dies in
-- between leaves the rest to the next.
CREATE TABLE usage_rollups (
  day date PRIMARY KEY,
  -- usage: by shards of projects. organizations: what the payment provider is told, and invoices.
  stage text NOT NULL DEFAULT 'usage' CHECK (stage IN ('usage', 'organizations')),
  -- The last project or organization that is done.
  done_up_to uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);
