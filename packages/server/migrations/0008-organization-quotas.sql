-- ── Quotas of organizations ───────────────────────────────────────────────────────────────────────────────────────

-- What all projects of an organization may use together.
CREATE TABLE organization_quotas (
  organization_id uuid NOT NULL REFERENCES organizations,
  name text NOT NULL,
  -- Null until the next start of a server fills in the configured limit: no limit.
  max bigint CHECK (max >= 0),
  -- The sum over its projects, kept by trigger, never by hand. Of quotas that projects do not have (projects, networks,
  -- subnets, access_keys, members, webhooks) this stays 0: the things themselves are counted.
  used bigint NOT NULL DEFAULT 0 CHECK (used >= 0),
  PRIMARY KEY (organization_id, name)
);

-- A project that was given no limit of its own has that of its organization alone.
ALTER TABLE quotas ALTER COLUMN max DROP NOT NULL;

CREATE FUNCTION count_organization_quota() RETURNS trigger LANGUAGE plpgsql AS
$$
DECLARE
  owner uuid := (SELECT organization_id FROM projects WHERE id = coalesce(NEW.project_id, OLD.project_id));
  quota text := coalesce(NEW.name, OLD.name);
  change bigint := coalesce(NEW.used, 0) - coalesce(OLD.used, 0);
BEGIN
  IF change = 0 THEN RETURN NULL; END IF;
  UPDATE organization_quotas SET used = used + change WHERE organization_id = owner AND name = quota;
  IF NOT FOUND THEN
    INSERT INTO organization_quotas AS q (organization_id, name, used) VALUES (owner, quota, change)
    ON CONFLICT (organization_id, name) DO UPDATE SET used = q.used + excluded.used;
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER quotas_counted AFTER INSERT OR UPDATE OF used OR DELETE ON quotas
FOR EACH ROW EXECUTE FUNCTION count_organization_quota();

LOCK TABLE quotas IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO organization_quotas (organization_id, name, used)
SELECT p.organization_id, q.name, sum(q.used) FROM quotas q JOIN projects p ON p.id = q.project_id GROUP BY 1, 2;
