-- The beginning of the last response of a webhook's receiver, for its owner to find out why a delivery failed.
ALTER TABLE webhook_deliveries
  ADD COLUMN response_body text NOT NULL DEFAULT '';
