-- Changes of prices are counted beside the time: whoever read what something costs can tell whether that still holds.
ALTER TABLE clock ADD price_changes bigint NOT NULL DEFAULT 0;

CREATE OR REPLACE VIEW moment AS
SELECT date_trunc('milliseconds', coalesce(frozen_at, statement_timestamp() + shift)) AS now, price_changes FROM clock;

CREATE FUNCTION count_price_change() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  UPDATE clock SET price_changes = price_changes + 1;
  RETURN NULL;
END
$$;
CREATE TRIGGER prices_changed AFTER INSERT OR UPDATE OR DELETE ON prices FOR EACH ROW EXECUTE FUNCTION count_price_change();
