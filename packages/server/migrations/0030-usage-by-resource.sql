-- Usage by resource, with the labels that it had at the close of the day.

ALTER TABLE usage_intervals
  ADD resource_name text NOT NULL DEFAULT '',
  ADD labels jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN usage_intervals.labels IS 'Of its resource, kept up to date until the day after its end.';
UPDATE usage_intervals i SET resource_name = v.name, labels = v.labels
FROM vms v WHERE v.id = i.resource_id AND upper_inf(i.period);
UPDATE usage_intervals i SET resource_name = d.name, labels = d.labels
FROM disks d WHERE d.id = i.resource_id AND upper_inf(i.period);

CREATE TABLE usage_resource_days (
  project_id uuid NOT NULL REFERENCES projects,
  day date NOT NULL,
  resource_id uuid NOT NULL,
  location text NOT NULL,
  resource_type text NOT NULL CHECK (resource_type IN ('vm', 'disk')),
  product_name text NOT NULL,
  resource_name text NOT NULL,
  labels jsonb NOT NULL,
  quantity_ms bigint NOT NULL CHECK (quantity_ms > 0),
  cost_usd_ms numeric CHECK (cost_usd_ms >= 0),
  PRIMARY KEY (project_id, day, resource_id, product_name)
);
COMMENT ON TABLE usage_resource_days IS 'What usage_days adds up, by resource; quantities and costs as there.';

ALTER TABLE usage_days_closed ADD has_resources boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN usage_days_closed.has_resources IS 'Its usage is also kept by resource.';
