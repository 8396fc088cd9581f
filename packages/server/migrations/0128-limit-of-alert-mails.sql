-- How many alerts were mailed to the additional recipients on one UTC day, which limits what a tenant can send to
-- addresses of other people.
ALTER TABLE organizations
  ADD COLUMN alert_mails_on date,
  ADD COLUMN alert_mails integer NOT NULL DEFAULT 0;
