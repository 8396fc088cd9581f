-- Each of these serves a statement that would otherwise read a whole table; packages/server/test/store/plans.test.ts looks.

-- A project's VMs with those that are hidden: they are few, and counted before a project or a card goes.
DROP INDEX vms_by_project;
CREATE INDEX vms_by_project ON vms (project_id, id DESC);
-- Failed operations, of all projects and of one: few among all that ever were.
CREATE INDEX operations_failed ON operations (id) WHERE state = 'FAILED';
CREATE INDEX operations_failed_of_project ON operations (project_id, id) WHERE state = 'FAILED';
-- Where events begin to matter to any webhook.
CREATE INDEX webhooks_by_since ON webhooks (since_position);
-- An organization's projects, deleted ones too: usage and invoices go back further.
CREATE INDEX projects_by_organization ON projects (organization_id);
-- Whose card the payment provider speaks of.
CREATE INDEX organizations_by_customer ON organizations (payment_customer_id);
-- A user's invitations.
CREATE INDEX one_time_codes_of_user ON one_time_codes (user_id) WHERE user_id IS NOT NULL;
-- What retention looks for.
CREATE INDEX one_time_codes_by_expiry ON one_time_codes (expires_at);
CREATE INDEX password_failures_by_age ON password_failures (failed_at);
CREATE INDEX token_families_by_age ON token_families (created_at);
CREATE INDEX token_families_revoked ON token_families (revoked_at) WHERE revoked_at IS NOT NULL;
-- What runs now, without all that a project ever ran.
CREATE INDEX usage_intervals_open_of_project ON usage_intervals (project_id) WHERE upper_inf(period);
