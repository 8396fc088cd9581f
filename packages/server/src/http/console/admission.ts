import { routeOf } from '@slipway/contract'
import type { FastifyRequest } from 'fastify'
import { Failure, requireFound } from '../../domain/failure.ts'
import { hashSecret } from '../../domain/secret.ts'
import { type GuestConsole, openGuestConsole } from '../../operations/vm/serial-log.ts'
import {
  type ConsoleTicket,
  findWriter,
  leaveConsole,
  redeemTicket,
  takeConsole,
} from '../../store/compute/consoles.ts'
import { findVm, type VmRow } from '../../store/compute/vms.ts'
import type { Caller } from '../../store/identity/access.ts'
import { type Grant, holderOf, isAtLeast } from '../access.ts'
import type { HttpServices } from '../context.ts'
import { leaseS } from './session.ts'

export const consoleInUse = (holder: string) =>
  new Failure(
    'conflict',
    `${holder} is writing to this console. Use force to take over the console, or use read mode.`,
  )

/** A console session whose ticket was accepted. */
export interface AdmittedSession {
  ticket: ConsoleTicket
  vm: VmRow
  console: GuestConsole | null
  caller: Caller
  organizationId: string
  release: () => void
}

/** Redeems the ticket, checks its credential again, and takes the console if the session wants to write. */
export async function admit(services: HttpServices, request: FastifyRequest): Promise<AdmittedSession> {
  const { database } = services
  const { ticket: secret } = request.params as { ticket: string }
  const ticket = requireFound('console ticket', await redeemTicket(database, hashSecret(secret)))
  const grant = await grantOf(services, ticket, request.ip)
  const vm = requireFound('VM', await findVm(database, ticket.project_id, ticket.vm_id))
  const release = services.streams.hold(holderOf({ grant, ip: request.ip }))
  try {
    const console = ticket.mode === 'write' ? await openToWrite(services, ticket, vm, grant.caller) : null
    return { ticket, vm, console, caller: grant.caller, organizationId: grant.organizationId!, release }
  } catch (error) {
    release()
    throw error
  }
}

async function openToWrite(
  services: HttpServices,
  { session_id, is_forced }: ConsoleTicket,
  vm: VmRow,
  caller: Caller,
): Promise<GuestConsole> {
  const holder = caller.kind === 'user' ? caller.email : `The access key ${caller.id}`
  const writer = { vmId: vm.id, sessionId: session_id, holder, isForced: is_forced, leaseS }
  if (!(await takeConsole(services.database, writer)))
    throw consoleInUse((await findWriter(services.database, vm.id))?.holder ?? 'Another session')
  // Close the previous writer's session before this one is connected.
  services.signals.send('console', vm.id)
  try {
    return await openGuestConsole(services, vm)
  } catch (error) {
    await leaveConsole(services.database, vm.id, session_id)
    throw error
  }
}

/** Throws 401, 404 or 403 if the ticket's credential does not allow this session. */
export async function grantOf(
  services: HttpServices,
  ticket: ConsoleTicket,
  address: string,
): Promise<Grant> {
  const bearer = { digest: ticket.bearer_digest, isKey: ticket.is_key }
  const caller = await services.access.authenticate(bearer, address)
  const params = { project_id: ticket.project_id }
  const grant = await services.access.authorize(routeOf('vmConsoleCreate'), caller, params)
  const { organizationId, project } = grant
  if (ticket.mode === 'write' && !isAtLeast('member', { caller, organizationId: organizationId!, project }))
    throw new Failure('permission_denied', 'Write mode requires the member role.')
  return grant
}

/** Called if the client disconnected before its console was open. */
export async function abandon(
  { database }: HttpServices,
  { ticket, console }: AdmittedSession,
): Promise<void> {
  console?.close()
  if (console) await leaveConsole(database, ticket.vm_id, ticket.session_id).catch(() => {})
}
