import type { Role } from '@slipway/contract'
import { zeroUuid } from '../../domain/ids.ts'
import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

/** An invitation to a membership, to the operator role, or, with neither, only to an account. */
export interface InvitationRow {
  id: string
  email: string
  organization_id: string | null
  role: Role | null
  is_operator: boolean
  invited_by: string
  created_at: Date
  expires_at: Date
}

/**
 * The user or key that invites, and the right that allows it. The invitation is valid only while its maker
 * has that right.
 */
export interface Inviter {
  /** Shown to the invited person: an e-mail address, or a description of a key. */
  invitedBy: string
  /** The signed-in user, or the user who created the key. */
  makerUserId: string | null
  makerKeyId: string | null
  madeAs: 'owner' | 'operator'
}

// There is one row for each offer to an e-mail address. Inviting again keeps the id and replaces the code.
const put = statement<InvitationRow, NewInvitation>(
  'invitation_put',
  `INSERT INTO invitations (id, email, organization_id, role, is_operator, code_hash, invited_by, maker_user_id,
                            maker_key_id, made_as, expires_at)
   VALUES (:id, :email, :organizationId, :role, :isOperator, :codeHash, :invitedBy, :makerUserId, :makerKeyId, :madeAs,
           sign_in_now() + make_interval(secs => :seconds))
   ON CONFLICT (coalesce(organization_id, '${zeroUuid}'), email, is_operator) DO UPDATE
   SET role = excluded.role, code_hash = excluded.code_hash, invited_by = excluded.invited_by,
       maker_user_id = excluded.maker_user_id, maker_key_id = excluded.maker_key_id, made_as = excluded.made_as,
       expires_at = excluded.expires_at
   RETURNING *`,
)

export const findInvitations = statement<
  InvitationRow & { organization_name: string | null },
  { codeHash: Buffer }
>(
  'invitations_by_code',
  `SELECT i.*, o.name AS organization_name FROM invitations i LEFT JOIN organizations o ON o.id = i.organization_id
   WHERE i.code_hash = :codeHash AND i.expires_at > sign_in_now() AND maker_may_invite(i) ORDER BY i.organization_id NULLS LAST`,
).allBy('codeHash')

/**
 * Returns no rows if the code is unknown, used, replaced or expired, or if its maker has lost the right to
 * invite. If two requests redeem a code at the same time, only one of them gets its rows. When the maker
 * loses the right, the same rows are deleted, so that one of the two transactions waits for the other.
 */
export const takeInvitations = statement<InvitationRow, { codeHash: Buffer }, Tx>(
  'invitations_take',
  `DELETE FROM invitations i
   WHERE i.code_hash = :codeHash AND i.expires_at > sign_in_now() AND maker_may_invite(i) RETURNING *`,
).allBy('codeHash')

export const setInvitationRole = statement<never, { organizationId: string; id: string; role: Role }, Tx>(
  'invitation_set_role',
  'UPDATE invitations SET role = :role WHERE organization_id = :organizationId AND id = :id',
).runBy('organizationId', 'id', 'role')

export const deleteInvitation = statement<never, { organizationId: string; id: string }, Tx>(
  'invitation_delete',
  'DELETE FROM invitations WHERE organization_id = :organizationId AND id = :id',
).runBy('organizationId', 'id')

/** Deletes an open invitation to become an operator. */
export const deleteOperatorInvitation = statement<InvitationRow, { id: string }, Tx>(
  'invitation_delete_mark',
  'DELETE FROM invitations WHERE id = :id AND is_operator RETURNING *',
).oneBy('id')

/**
 * Deletes the user's open invitations that the user no longer has the right to make. Call this whenever a
 * user loses a right.
 */
export const dropInvitationsOfUser = statement<InvitationRow, { userId: string }, Tx>(
  'invitations_drop_of_user',
  'DELETE FROM invitations i WHERE i.maker_user_id = :userId AND NOT maker_may_invite(i) RETURNING *',
).allBy('userId')

export const dropInvitationsOfKeys = statement<InvitationRow, { keyIds: string[] }, Tx>(
  'invitations_drop_of_keys',
  'DELETE FROM invitations i WHERE i.maker_key_id = ANY (:keyIds::uuid[]) AND NOT maker_may_invite(i) RETURNING *',
).allBy('keyIds')

interface NewInvitation extends Inviter {
  id: string
  email: string
  organizationId: string | null
  role: Role | null
  isOperator: boolean
  codeHash: Buffer
  seconds: number
}

export const putInvitation = async (tx: Tx, invitation: NewInvitation): Promise<InvitationRow> =>
  (await put.one(tx, invitation))!
