import type { KeyKind, Role } from '@slipway/contract'
import {
  createOperatorKey,
  createOrganizationKey,
  createProjectKey,
  revokeKey,
} from '../../accounts/access-keys.ts'
import { invalidField } from '../../domain/failure.ts'
import {
  type AccessKeyRow,
  type KeyScope,
  listAccessKeys,
  listOperatorKeys,
  listOrganizationKeys,
  operatorScope,
} from '../../store/identity/access-keys.ts'
import { accessKeyView } from '../../views/identity.ts'
import { findRole } from '../access.ts'
import { type Context, creatorOf, type Handlers, requireCaller } from '../context.ts'
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
    viewWithSecret(await createProjectKey(context.tx, context.by, creatorOf(context), keyRequest(context))),

  accessKeyDelete: (context) => revoke(context, { projectId: context.by.projectId, organizationId: null }),

  organizationKeyList: (context) =>
    pageById(
      context,
      (...page) => listOrganizationKeys(context.tx, context.organizationId, ...page),
      accessKeyView,
    ),

  async organizationKeyCreate(context) {
    const { tx, by, organizationId } = context
    const role = roleIn(context, organizationId)
    return viewWithSecret(await createOrganizationKey(tx, by, creatorOf(context), role, keyRequest(context)))
  },

  organizationKeyDelete: (context) => {
    const { organizationId } = context
    return revoke(context, { projectId: null, organizationId }, roleIn(context, organizationId))
  },

  adminKeyList: (context) =>
    pageById(context, (...page) => listOperatorKeys(context.tx, ...page), accessKeyView),

  adminKeyCreate: async (context) =>
    viewWithSecret(await createOperatorKey(context.tx, context.by, creatorOf(context), context.body)),

  adminKeyDelete: (context) => revoke(context, operatorScope),
} satisfies Partial<Handlers>

/** Returns the body of the request, with the keys that encrypt the secret of a signing key. */
function keyRequest<Body extends { kind?: KeyKind }>({
  services: { config, secretKey },
  body,
}: Pick<Context, 'services'> & { body: Body }) {
  if (body.kind !== 'signing') return body
  if (!config.server.familyApi)
    throw invalidField(
      'kind',
      'must be bearer: signing keys are for the compatible API, which this service does not offer; an operator can enable it with [server] family_api',
    )
  return { ...body, sealedWith: secretKey }
}

const roleIn = (context: Context, organizationId: string) =>
  findRole(requireCaller(context), organizationId)!.role!

async function revoke(
  { tx, by, params, query }: Context<'accessKeyDelete' | 'organizationKeyDelete' | 'adminKeyDelete'>,
  scope: KeyScope,
  callerRole?: Role,
) {
  const revocation = {
    ...(callerRole && { callerRole }),
    isRevokingDescendants: query.revoke_descendants,
  }
  return { revoked_descendants: await revokeKey(tx, by, scope, params.key_id, revocation) }
}
