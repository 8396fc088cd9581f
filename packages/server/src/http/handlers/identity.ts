import { hasTotp } from '../../store/identity/second-factors.ts'
import { type Handlers, requireCaller } from '../context.ts'

export const identityHandlers = {
  async rootGet(context) {
    const caller = requireCaller(context)
    return {
      name: 'slipway',
      version: context.services.version,
      api_version: 'v0.1',
      caller: {
        kind: caller.kind,
        id: caller.id,
        email: caller.kind === 'user' ? caller.email : '',
        is_operator: caller.kind === 'operator_key' || (caller.kind === 'user' && caller.isOperator),
        has_totp: caller.kind === 'user' && (await hasTotp(context.tx, caller.id)),
        role: caller.kind === 'access_key' ? caller.role : '',
        project_id: (caller.kind === 'access_key' && caller.projectId) || '',
        organization_id: caller.kind === 'access_key' ? caller.organizationId : '',
        address: context.by.clientAddress,
      },
    }
  },
} satisfies Partial<Handlers>
