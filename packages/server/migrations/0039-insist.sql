-- What has to be so for a transaction to commit. It lets the commit go out together with the last statements: whoever would
-- have looked at their outcome in between says here what it must be.
CREATE FUNCTION insist(is_so boolean, otherwise text) RETURNS boolean LANGUAGE plpgsql AS
$$
BEGIN
  IF is_so THEN RETURN true; END IF;
  RAISE EXCEPTION USING ERRCODE = 'SL001', MESSAGE = otherwise;
END
$$;
