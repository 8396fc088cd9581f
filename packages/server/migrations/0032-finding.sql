-- ── What needs someone ────────────────────────────────────────────────────────────────────────────────────────────

ALTER TABLE vms
  -- When it came into its state; a change of its name or labels is none. Null only in rows that no state change wrote.
  ADD COLUMN state_since timestamptz,
  -- When it was last powered on or reset; null while it is off.
  ADD COLUMN started_at timestamptz;
UPDATE vms v SET
  state_since = v.updated_at,
  started_at = CASE WHEN v.state NOT IN ('STATE_CREATING', 'STATE_SHUTOFF', 'STATE_STARTING') THEN
    coalesce((SELECT lower(i.period) FROM usage_intervals i WHERE i.resource_id = v.id AND upper_inf(i.period)),
             v.created_at) END;

ALTER TABLE organizations
  -- When its payment state last changed; null where that was before this column was.
  ADD COLUMN payment_state_since timestamptz;

-- These serve the alerts of operators.
CREATE INDEX organizations_unpaid ON organizations (id) WHERE payment_state IN ('declined', 'removed');
CREATE INDEX invoices_due ON invoices (organization_id) WHERE state = 'issued';
CREATE INDEX gpus_gone ON gpus (host_id) WHERE state = 'gone';
CREATE INDEX operations_in_trouble ON operations (id) WHERE state = 'IN_PROGRESS' AND (is_stuck OR attempts >= 10);
