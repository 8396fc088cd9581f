-- The key that made this key; null if a signed-in user did.
ALTER TABLE access_keys ADD COLUMN parent_id uuid REFERENCES access_keys;
CREATE INDEX access_keys_by_parent ON access_keys (parent_id) WHERE parent_id IS NOT NULL;

-- The session ends at this time, even if it is refreshed.
ALTER TABLE token_families ADD COLUMN expires_at timestamptz NOT NULL DEFAULT slipway_now() + interval '30 days';
UPDATE token_families SET expires_at = created_at + interval '30 days';
-- The single sign-on provider that the user signed in with; null for a password.
ALTER TABLE token_families ADD COLUMN oidc_provider text;
-- The tokens of that provider, with which a refresh reads the claims again; encrypted with the master key.
ALTER TABLE token_families ADD COLUMN oidc_sealed bytea;

-- Without another look at the claims, a role that they gave has no effect from this time on; null for other memberships.
ALTER TABLE memberships ADD COLUMN claimed_until timestamptz;
UPDATE memberships SET claimed_until = slipway_now() + interval '24 hours' WHERE oidc_issuer IS NOT NULL;

-- Returns whether the maker of an invitation could still make it: the user is not suspended, has not lost the right, and the
-- key is neither revoked nor expired.
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
          AND (m.claimed_until IS NULL OR m.claimed_until > slipway_now()))
    END
$$;
