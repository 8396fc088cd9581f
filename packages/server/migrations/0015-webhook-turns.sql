-- ── Webhooks take turns ───────────────────────────────────────────────────────────────────────────────────────────

-- (Servers of the version before neither deliver nor change webhooks while this schema is in place, since they know
-- nothing of heads and sealed secrets: what they look for has other names. Everything else of theirs works.)
ALTER TABLE webhook_cursor RENAME TO webhook_fan_out;
ALTER TABLE webhook_deliveries RENAME COLUMN lease_until TO leased_until;
ALTER TABLE webhooks RENAME COLUMN failing_since TO fails_since;

-- A line is what one webhook waits to hear about one resource, by seq. Its first is its head, and only heads (and what
-- somebody asked for) have next_attempt_at: the end of the lease during an attempt, null while the webhook is paused.
-- Whoever adds to a line or ends its head holds the webhook's row, so that no line is ever without a head.
UPDATE webhook_deliveries d SET next_attempt_at = NULL
WHERE d.state = 'pending' AND NOT d.is_direct AND d.next_attempt_at IS NOT NULL AND EXISTS (
  SELECT FROM webhook_deliveries b WHERE b.webhook_id = d.webhook_id AND b.resource_id = d.resource_id
    AND b.state = 'pending' AND NOT b.is_direct AND b.seq < d.seq);
UPDATE webhook_deliveries SET next_attempt_at = greatest(next_attempt_at, leased_until)
WHERE state = 'pending' AND next_attempt_at IS NOT NULL;
DROP INDEX webhook_deliveries_due;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_attempt_at)
  WHERE state = 'pending' AND next_attempt_at IS NOT NULL;
-- How often somebody asked for a delivery lately.
CREATE INDEX webhook_deliveries_asked ON webhook_deliveries (webhook_id, created_at) WHERE is_direct;

ALTER TABLE webhooks
  -- When it stands in line for a slot, the earliest first; null while nothing is to be delivered.
  ADD COLUMN due_at timestamptz,
  -- The last attempt failed or took long, or there was none yet: such a webhook gets one slot.
  ADD COLUMN is_slow boolean NOT NULL DEFAULT true,
  -- Attempts that failed since one succeeded, and how long the receiver is left alone for it.
  ADD COLUMN failures integer NOT NULL DEFAULT 0,
  ADD COLUMN rests_until timestamptz;
UPDATE webhooks w SET due_at = (
  SELECT min(d.next_attempt_at) FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.state = 'pending');
CREATE INDEX webhooks_due ON webhooks (is_slow, due_at) WHERE due_at IS NOT NULL;

-- Retention takes events that nobody heard of for months, as during a long suspension: the line goes on after them.
CREATE FUNCTION webhook_line_goes_on() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM webhooks WHERE id = OLD.webhook_id FOR NO KEY UPDATE;
  UPDATE webhook_deliveries SET next_attempt_at = slipway_now()
  WHERE id = (SELECT d.id FROM webhook_deliveries d
              WHERE d.webhook_id = OLD.webhook_id AND d.resource_id = OLD.resource_id AND d.state = 'pending'
                AND NOT d.is_direct AND d.seq > OLD.seq ORDER BY d.seq LIMIT 1);
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_line_goes_on AFTER DELETE ON webhook_deliveries FOR EACH ROW
  WHEN (OLD.state = 'pending' AND NOT OLD.is_direct AND OLD.next_attempt_at IS NOT NULL)
  EXECUTE FUNCTION webhook_line_goes_on();

-- ── Secrets at rest ───────────────────────────────────────────────────────────────────────────────────────────────

-- Sealed under the master key. A process that starts seals what is still plain.
ALTER TABLE webhook_secrets RENAME COLUMN secret TO plain;
ALTER TABLE webhook_secrets DROP CONSTRAINT webhook_secrets_pkey;
ALTER TABLE webhook_secrets
  ALTER COLUMN plain DROP NOT NULL,
  ADD COLUMN id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  ADD COLUMN sealed bytea,
  ADD CONSTRAINT webhook_secrets_one_form CHECK ((plain IS NULL) <> (sealed IS NULL));
CREATE INDEX webhook_secrets_of_webhook ON webhook_secrets (webhook_id);
CREATE INDEX webhook_secrets_plain ON webhook_secrets (id) WHERE plain IS NOT NULL;

-- The key that secrets are sealed under: a process that does not have it refuses to start.
CREATE TABLE secret_key (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  id text NOT NULL
);
