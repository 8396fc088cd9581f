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
import { findRole } from '../access.ts'
import { emptyResponse, type Handlers, makerOf, requireCaller } from '../context.ts'
import { pageById } from '../pages.ts'

/** The only response that contains the secret. */
const viewWithSecret = ({ row, secret }: { row: AccessKeyRow; secret: string }) => ({
  ...accessKeyView(row),
  secret,
})

export const accessKeyHandlers = {
  accessKeyList: (context) =>
    pageById(
      context,
      (...page) => listAccessKeys(context.tx, context.params.project_id, ...page),
      accessKeyView,
    ),

  accessKeyCreate: async (context) =>
    viewWithSecret(await createProjectKey(context.tx, context.by, makerOf(context), context.body)),

  accessKeyDelete: ({ tx, by, params }) =>
    emptyResponse(revokeKey(tx, by, { projectId: by.projectId, organizationId: null }, params.key_id)),

  organizationKeyList: (context) =>
    pageById(
      context,
      (...page) => listOrganizationKeys(context.tx, context.organizationId, ...page),
      accessKeyView,
    ),

  async organizationKeyCreate(context) {
    const { tx, by, body, organizationId } = context
    const { role } = findRole(requireCaller(context), organizationId)!
    return viewWithSecret(await createOrganizationKey(tx, by, makerOf(context), role!, body))
  },

  organizationKeyDelete: ({ tx, by, organizationId, params }) =>
    emptyResponse(revokeKey(tx, by, { projectId: null, organizationId }, params.key_id)),

  adminKeyList: (context) =>
    pageById(context, (...page) => listOperatorKeys(context.tx, ...page), accessKeyView),

  adminKeyCreate: async (context) =>
    viewWithSecret(await createOperatorKey(context.tx, context.by, makerOf(context), context.body)),

  adminKeyDelete: ({ tx, by, params }) => emptyResponse(revokeKey(tx, by, operatorScope, params.key_id)),
} satisfies Partial<Handlers>
