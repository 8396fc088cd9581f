import {
  createOperatorKey,
  createOrganizationKey,
  createProjectKey,
  revokeKey,
} from '../../accounts/access-keys.ts'
import {
  type AccessKeyRow,
  listAccessKeys,
  listOperatorKeys,
  listOrganizationKeys,
  operatorScope,
} from '../../store/identity/access-keys.ts'
import { accessKeyView } from '../../views/identity.ts'
import { standingIn } from '../access.ts'
import { type Handlers, makerOf, requireCaller } from '../context.ts'
import { pageById } from '../pages.ts'

type Verb = 'List' | 'Create' | 'Delete'
type KeyRoutes = `accessKey${Verb}` | `organizationKey${Verb}` | `adminKey${Verb}`

/** The only answer that has the secret. */
const created = ({ row, secret }: { row: AccessKeyRow; secret: string }) => ({
  ...accessKeyView(row),
  secret,
})

export const accessKeyHandlers: Handlers<KeyRoutes> = {
  accessKeyList(context) {
    const { tx, params } = context
    const read = (before: string | null, limit: number) =>
      listAccessKeys(tx, params.project_id, before, limit)
    return pageById(context, read, accessKeyView)
  },

  async accessKeyCreate(context) {
    const { tx, by, body } = context
    return created(await createProjectKey(tx, by, makerOf(context), body))
  },

  async accessKeyDelete({ tx, by, params }) {
    await revokeKey(tx, by, { projectId: by.projectId, organizationId: null }, params.key_id)
    return {}
  },

  organizationKeyList(context) {
    const { tx, organizationId } = context
    const read = (before: string | null, limit: number) =>
      listOrganizationKeys(tx, organizationId, before, limit)
    return pageById(context, read, accessKeyView)
  },

  async organizationKeyCreate(context) {
    const { tx, by, body, organizationId } = context
    const { role } = standingIn(requireCaller(context), organizationId)!
    return created(await createOrganizationKey(tx, by, makerOf(context), role!, body))
  },

  async organizationKeyDelete({ tx, by, organizationId, params }) {
    await revokeKey(tx, by, { projectId: null, organizationId }, params.key_id)
    return {}
  },

  adminKeyList(context) {
    const read = (before: string | null, limit: number) => listOperatorKeys(context.tx, before, limit)
    return pageById(context, read, accessKeyView)
  },

  async adminKeyCreate(context) {
    const { tx, by, body } = context
    return created(await createOperatorKey(tx, by, makerOf(context), body))
  },

  async adminKeyDelete({ tx, by, params }) {
    await revokeKey(tx, by, operatorScope, params.key_id)
    return {}
  },
}
