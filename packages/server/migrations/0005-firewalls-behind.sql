-- ── Firewalls behind ──────────────────────────────────────────────────────────────────────────────────────────────

ALTER TABLE vms
  -- Since when the engine lacks what is wanted; null when it has it. The earliest change that is missing counts.
  ADD COLUMN firewall_behind_since timestamptz,
  -- How often in a row the engine could not be brought up to date, and when it is tried again.
  ADD COLUMN firewall_attempts integer NOT NULL DEFAULT 0,
  ADD COLUMN firewall_next_at timestamptz NOT NULL DEFAULT '-infinity';
UPDATE vms SET firewall_behind_since = slipway_now() WHERE firewall_applied < firewall_wanted AND firewall_applied > 0;

-- By project, so that one tenant's firewalls never stand in line behind another's, and then by when they are due.
DROP INDEX vms_firewall_behind;
CREATE INDEX vms_firewall_behind ON vms (location, project_id, firewall_next_at)
  WHERE firewall_applied < firewall_wanted;

-- ── Addresses held back ───────────────────────────────────────────────────────────────────────────────────────────

-- Public addresses whose VM is gone while firewalls of its project may still allow them. They are given to nobody until
-- every firewall that was behind at that time has caught up.
CREATE TABLE held_addresses (
  address inet PRIMARY KEY,
  project_id uuid NOT NULL REFERENCES projects ON DELETE CASCADE,
  held_at timestamptz NOT NULL DEFAULT slipway_now()
);

-- ── Names of firewall rules ───────────────────────────────────────────────────────────────────────────────────────

-- Every name that a rule has, or gets back if its change cannot be done: two during a rename, else one.
CREATE TABLE firewall_rule_names (
  project_id uuid NOT NULL REFERENCES projects ON DELETE CASCADE,
  name text NOT NULL,
  rule_id uuid NOT NULL REFERENCES firewall_rules ON DELETE CASCADE,
  PRIMARY KEY (project_id, name)
);
CREATE INDEX firewall_rule_names_by_rule ON firewall_rule_names (rule_id);
INSERT INTO firewall_rule_names (project_id, name, rule_id) SELECT project_id, name, id FROM firewall_rules;
-- A rename under way remembers the old name in its operation. Where somebody has taken it already, it stays theirs.
INSERT INTO firewall_rule_names (project_id, name, rule_id)
SELECT r.project_id, o.scratch -> 'before' ->> 'name', r.id
FROM firewall_rules r JOIN operations o ON o.resource_id = r.id AND o.state = 'IN_PROGRESS' AND o.kind = 'firewall-rule-update'
ON CONFLICT DO NOTHING;

CREATE FUNCTION hold_rule_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM firewall_rule_names
                 WHERE project_id = NEW.project_id AND name = NEW.name AND rule_id = NEW.id) THEN
    INSERT INTO firewall_rule_names (project_id, name, rule_id) VALUES (NEW.project_id, NEW.name, NEW.id);
  END IF;
  -- Nothing is under way: there is nothing to go back to.
  IF NEW.state = 'active' THEN
    DELETE FROM firewall_rule_names WHERE rule_id = NEW.id AND name <> NEW.name;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER firewall_rules_named AFTER INSERT OR UPDATE OF name, state ON firewall_rules
  FOR EACH ROW EXECUTE FUNCTION hold_rule_names();
