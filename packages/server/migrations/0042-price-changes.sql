-- Changes of prices are counted: whoever has read what something costs can tell whether that still holds.
CREATE TABLE price_changes (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  count bigint NOT NULL DEFAULT 0
);
INSERT INTO price_changes DEFAULT VALUES;

CREATE FUNCTION count_price_change() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
  UPDATE price_changes SET count = count + 1;
  RETURN NULL;
END
$$;
CREATE TRIGGER prices_changed AFTER INSERT OR UPDATE OR DELETE ON prices FOR EACH ROW EXECUTE FUNCTION count_price_change();
