import { type VmState, vmConsoleStates } from '@slipway/contract'
import { Failure, requireFound } from '../../../domain/failure.ts'
import { uuid } from '../../../domain/ids.ts'
import { hashSecret, newToken } from '../../../domain/secret.ts'
import { time } from '../../../postgres/time.ts'
import { findWriter, insertTicket } from '../../../store/compute/consoles.ts'
import { findVm } from '../../../store/compute/vms.ts'
import { isAtLeast, readBearer } from '../../access.ts'
import { consoleInUse } from '../../console/admission.ts'
import { consolePath } from '../../console/mount.ts'
import type { Handlers } from '../../context.ts'

const ticketLifeS = 30

const nextStep: Partial<Record<VmState, string>> = {
  STATE_SHUTOFF: ' Start it first.',
  STATE_CRASHED: ' Reset it first.',
}

export const consoleHandlers = {
  async vmConsoleCreate(context) {
    const { tx, services, project, params, body, request, caller, organizationId } = context
    const isWriter = body.mode === 'write'
    if (isWriter && !isAtLeast('member', { caller, organizationId, project }))
      throw new Failure('permission_denied', 'Write mode requires the member role. Use read mode.')
    const vm = requireFound('VM', await findVm(tx, project.projectId, params.vm_id))
    if (!vmConsoleStates.includes(vm.state))
      throw new Failure(
        'conflict',
        `The VM has no console because it is in ${vm.state}.${nextStep[vm.state] ?? ''}`,
      )
    const writer = isWriter && !body.force ? await findWriter(tx, vm.id) : undefined
    if (writer) throw consoleInUse(writer.holder)
    const bearer = readBearer(request.headers)!
    const [secret, session_id] = [newToken('console'), uuid()]
    const expiresAt = await insertTicket(tx, {
      hash: hashSecret(secret),
      sessionId: session_id,
      projectId: project.projectId,
      vmId: vm.id,
      mode: body.mode,
      isForced: body.force ?? false,
      bearerDigest: bearer.digest,
      isKey: bearer.isKey,
      lifeS: ticketLifeS,
    })
    const url = new URL(`${consolePath}/${secret}`, services.publicUrl())
    url.protocol = url.protocol.replace('http', 'ws')
    return { url: url.href, session_id, expires_at: time(expiresAt) }
  },
} satisfies Partial<Handlers>
