-- Nearly all VMs live and nearly all keys hold. PostgreSQL learns that when it first looks at a table that has rows; until
-- then it expects one in two hundred, and would walk the index of the living wherever one is looked up by its id. Before
-- version 18 there is no way to tell it.
DO
$$
DECLARE
  never record;
BEGIN
  IF current_setting('server_version_num')::integer < 180000 THEN RETURN; END IF;
  FOR never IN
    SELECT given.* FROM (VALUES ('vms', 'deleted_at'), ('access_keys', 'revoked_at')) AS given (table_name, column_name)
    WHERE NOT EXISTS (SELECT FROM pg_stats s WHERE s.schemaname = current_schema()
                        AND s.tablename = given.table_name AND s.attname = given.column_name)
  LOOP
    BEGIN
      PERFORM pg_restore_attribute_stats('schemaname', current_schema()::text, 'relname', never.table_name,
                                         'attname', never.column_name, 'inherited', false, 'null_frac', 1::real);
    EXCEPTION WHEN OTHERS THEN
      -- A hint is no reason not to start.
      RAISE WARNING 'no first statistics of %: %', never.table_name, SQLERRM;
    END;
  END LOOP;
END
$$;
