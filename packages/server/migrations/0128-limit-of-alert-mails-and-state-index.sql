-- How many alerts were mailed to the additional recipients on the UTC day `alert_mails_on`. The number is limited,
-- because a tenant can list other people's addresses.
ALTER TABLE organizations
  ADD COLUMN alert_mails_on date,
  ADD COLUMN alert_mails integer NOT NULL DEFAULT 0;

-- For operators, who list the requests of all organizations by state.
CREATE INDEX quota_requests_by_state ON quota_requests (state, id DESC);
