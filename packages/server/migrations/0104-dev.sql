-- A local service whose clients control its clock and its faults (--dev).

ALTER TABLE clock
  -- How far clients of a local service have moved the time.
  ADD COLUMN moved interval NOT NULL DEFAULT '0',
  -- Seconds of the service per second of the clock, since rate_since.
  ADD COLUMN rate double precision NOT NULL DEFAULT 1 CHECK (rate > 0),
  ADD COLUMN rate_since timestamptz NOT NULL DEFAULT 'epoch',
  -- While this is set, clients of a local service have frozen its time at this moment.
  ADD COLUMN paused_at timestamptz;

-- Sessions, one-time codes, invitations and failed sign-ins follow this time: moving the clock of a local service signs no user
-- out. Tests change shift and frozen_at, which both times follow.
CREATE FUNCTION sign_in_now() RETURNS timestamptz LANGUAGE sql STABLE AS
$$
  SELECT date_trunc('milliseconds', coalesce(frozen_at, greatest(statement_timestamp() + ahead, latest) + shift)) FROM clock
$$;

CREATE OR REPLACE VIEW moment AS
SELECT date_trunc('milliseconds', coalesce(frozen_at, paused_at, real.now + moved + (rate - 1) * (real.now - rate_since))) AS now
FROM clock CROSS JOIN LATERAL (SELECT greatest(statement_timestamp() + ahead, latest) + shift AS now) real;

ALTER TABLE token_families ALTER created_at SET DEFAULT sign_in_now(), ALTER last_used_at SET DEFAULT sign_in_now(),
  ALTER expires_at SET DEFAULT sign_in_now() + interval '30 days';
ALTER TABLE one_time_codes ALTER created_at SET DEFAULT sign_in_now();
ALTER TABLE password_failures ALTER failed_at SET DEFAULT sign_in_now();
ALTER TABLE known_addresses ALTER signed_in_at SET DEFAULT sign_in_now();

CREATE OR REPLACE FUNCTION maker_may_invite(i invitations) RETURNS boolean LANGUAGE sql STABLE AS
$$
  SELECT NOT EXISTS (SELECT FROM users u WHERE u.id = i.maker_user_id AND u.suspended_at IS NOT NULL)
    AND CASE
      WHEN i.maker_key_id IS NOT NULL THEN EXISTS (
        SELECT FROM access_keys k
        WHERE k.id = i.maker_key_id AND k.revoked_at IS NULL
          AND (k.expires_at IS NULL OR k.expires_at > slipway_now())
          AND CASE i.made_as
                WHEN 'operator' THEN k.kind = 'operator'
                ELSE k.kind = 'organization' AND k.organization_id = i.organization_id AND k.role = 'owner'
              END)
      WHEN i.made_as = 'operator' THEN EXISTS (SELECT FROM users u WHERE u.id = i.maker_user_id AND u.is_operator)
      ELSE EXISTS (
        SELECT FROM memberships m
        WHERE m.organization_id = i.organization_id AND m.user_id = i.maker_user_id AND m.role = 'owner'
          AND (m.claimed_until IS NULL OR m.claimed_until > sign_in_now()))
    END
$$;

CREATE TABLE dev_faults (
  id uuid PRIMARY KEY,
  position bigint GENERATED ALWAYS AS IDENTITY,
  fault jsonb NOT NULL
);
COMMENT ON TABLE dev_faults IS 'Faults that clients of a local service asked for (--dev); empty otherwise.';
