-- The beginning of the receiver's last response, so that the owner of the webhook can find out why a delivery failed.
ALTER TABLE webhook_deliveries
  ADD COLUMN response_body text NOT NULL DEFAULT '';
