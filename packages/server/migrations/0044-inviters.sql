-- An invitation is worth as much as the right of its maker, who is therefore on record. Open invitations without one end.
DELETE FROM invitations;
ALTER TABLE invitations
  -- The user who made it, or who made the key that made it; null for a key without a user.
  ADD COLUMN maker_user_id uuid REFERENCES users,
  -- The access key that made it; null if the user was signed in.
  ADD COLUMN maker_key_id uuid REFERENCES access_keys,
  -- By which right it was made: as an owner of the organization, or as an operator.
  ADD COLUMN made_as text NOT NULL CHECK (made_as IN ('owner', 'operator')),
  ADD CONSTRAINT invitations_maker CHECK (maker_user_id IS NOT NULL OR maker_key_id IS NOT NULL),
  ADD CONSTRAINT invitations_made_as_owner CHECK (made_as = 'operator' OR organization_id IS NOT NULL);
CREATE INDEX invitations_by_maker ON invitations (maker_user_id);
CREATE INDEX invitations_by_maker_key ON invitations (maker_key_id) WHERE maker_key_id IS NOT NULL;

-- Whether the maker of an invitation could still make it: neither suspended, removed, demoted nor without the operator's
-- mark, and the key neither revoked nor expired.
CREATE FUNCTION maker_may_invite(i invitations) RETURNS boolean LANGUAGE sql STABLE AS
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
        WHERE m.organization_id = i.organization_id AND m.user_id = i.maker_user_id AND m.role = 'owner')
    END
$$;
