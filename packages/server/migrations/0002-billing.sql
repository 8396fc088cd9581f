-- ── Usage by day ──────────────────────────────────────────────────────────────────────────────────────────────────

CREATE INDEX usage_intervals_by_project_period ON usage_intervals USING gist (project_id, period);

-- What the intervals of a whole UTC day come to. Written once, when the day is closed.
CREATE TABLE usage_days (
  day date NOT NULL,
  project_id uuid NOT NULL REFERENCES projects,
  location text NOT NULL,
  resource_type text NOT NULL CHECK (resource_type IN ('vm', 'disk')),
  product_name text NOT NULL,
  -- VM-milliseconds or GB-milliseconds.
  quantity_ms bigint NOT NULL CHECK (quantity_ms > 0),
  -- Each part times the price of its time, in USD-milliseconds per hour: exact, to be divided by 3,600,000 when shown.
  -- Null when no price was set.
  cost_usd_ms numeric CHECK (cost_usd_ms >= 0),
  PRIMARY KEY (project_id, day, location, product_name)
);

-- Days are closed in order, one after the other.
CREATE TABLE usage_days_closed (
  day date PRIMARY KEY,
  closed_at timestamptz NOT NULL DEFAULT slipway_now()
);

-- ── Invoices ──────────────────────────────────────────────────────────────────────────────────────────────────────

-- Issued in the transaction that closes the last day of a month. The month under way is computed, not stored.
CREATE TABLE invoices (
  id uuid PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations,
  month date NOT NULL CHECK (extract(day FROM month) = 1),
  state text NOT NULL CHECK (state IN ('issued', 'paid')),
  usd_cents bigint NOT NULL CHECK (usd_cents >= 0),
  issued_at timestamptz NOT NULL DEFAULT slipway_now(),
  paid_at timestamptz,
  UNIQUE (organization_id, month),
  CHECK ((state = 'paid') = (paid_at IS NOT NULL))
);

-- Rounded once, here.
CREATE TABLE invoice_lines (
  invoice_id uuid NOT NULL REFERENCES invoices ON DELETE CASCADE,
  project_id uuid NOT NULL REFERENCES projects,
  product_name text NOT NULL,
  unit text NOT NULL CHECK (unit IN ('vm_hour', 'gb_hour')),
  quantity_ms numeric NOT NULL CHECK (quantity_ms > 0),
  usd_cents bigint NOT NULL CHECK (usd_cents >= 0),
  PRIMARY KEY (invoice_id, project_id, product_name)
);

-- ── Budgets ───────────────────────────────────────────────────────────────────────────────────────────────────────

CREATE TABLE budgets (
  project_id uuid PRIMARY KEY REFERENCES projects,
  -- Null: no limit.
  monthly_usd numeric CHECK (monthly_usd >= 0),
  is_hard_stop boolean NOT NULL DEFAULT false
);

-- Each threshold is told once a month.
CREATE TABLE budget_alerts (
  project_id uuid NOT NULL REFERENCES projects,
  month date NOT NULL,
  threshold_percent integer NOT NULL,
  raised_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (project_id, month, threshold_percent)
);

-- ── Payment ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- A link to the billing dashboard: only the hash of what the link contains is kept.
CREATE TABLE billing_sessions (
  token_hash bytea PRIMARY KEY,
  organization_id uuid NOT NULL REFERENCES organizations,
  -- The link works no longer than its maker is an owner.
  user_id uuid NOT NULL REFERENCES users,
  expires_at timestamptz NOT NULL
);
CREATE INDEX billing_sessions_by_expiry ON billing_sessions (expires_at);

-- The one that is charged. Never a card number.
CREATE TABLE payment_methods (
  organization_id uuid PRIMARY KEY REFERENCES organizations,
  provider text NOT NULL CHECK (provider IN ('builtin', 'stripe')),
  -- The provider's name for it.
  reference text NOT NULL,
  brand text NOT NULL,
  last4 text NOT NULL CHECK (last4 ~ '^[0-9]{4}$'),
  expires_month integer NOT NULL CHECK (expires_month BETWEEN 1 AND 12),
  expires_year integer NOT NULL CHECK (expires_year BETWEEN 2000 AND 9999),
  created_at timestamptz NOT NULL DEFAULT slipway_now()
);

-- Events of the payment provider that were dealt with: a repeated one does nothing.
CREATE TABLE provider_events (
  id text PRIMARY KEY,
  received_at timestamptz NOT NULL DEFAULT slipway_now()
);
CREATE INDEX provider_events_by_age ON provider_events (received_at);

-- Looks at the provider are numbered as they begin; an older one never overwrites a newer one.
CREATE TABLE provider_syncs (
  organization_id uuid PRIMARY KEY REFERENCES organizations,
  begun bigint NOT NULL,
  applied bigint NOT NULL DEFAULT 0
);

-- What the payment provider is told of each day: the cents by which the month's invoice grew.
CREATE TABLE meter_reports (
  organization_id uuid NOT NULL REFERENCES organizations,
  day date NOT NULL,
  usd_cents bigint NOT NULL CHECK (usd_cents > 0),
  -- disputed: the provider knows another amount, or cannot be told any more; an operator has to look.
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'disputed')),
  attempts integer NOT NULL DEFAULT 0,
  -- When the provider may first have heard of it: it remembers our identifier for a day from then.
  tried_at timestamptz,
  next_attempt_at timestamptz NOT NULL DEFAULT slipway_now(),
  PRIMARY KEY (organization_id, day)
);
CREATE INDEX meter_reports_due ON meter_reports (next_attempt_at) WHERE state = 'pending';
