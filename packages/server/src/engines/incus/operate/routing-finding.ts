import { once } from 'node:events'
import { connect } from 'node:net'
import type { IncusContext } from '../context.ts'
import { type Instance, marks } from '../instances.ts'
import { type Finding, ok, warning } from './finding.ts'

const sshPort = 22
const responseMs = 2_000
/** How many members are checked, each with one VM. One VM is enough to check the route to a member. */
const maxMembers = 20

/** Returns whether the address responds to a connection. A refusal is a response, too. */
export type AddressCheck = (address: string) => Promise<boolean>

export const reachesByTcp: AddressCheck = async (address) => {
  const socket = connect(sshPort, address)
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(responseMs) })
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
  } finally {
    socket.destroy()
  }
}

/** Connects to the public address of one running VM on each member. */
export async function routingFinding(
  ctx: IncusContext,
  reaches: AddressCheck,
  signal: AbortSignal,
): Promise<Finding> {
  const query = { project: ctx.config.project, recursion: '1' }
  const instances = await ctx.client.get<Instance[]>('/1.0/instances', { signal, query })
  const chosen = new Map<string, string>()
  for (const { location, status, config } of instances) {
    const address = config?.[marks.publicAddress]
    if (address && status === 'Running' && chosen.size < maxMembers) chosen.set(location, address)
  }
  const tried = await Promise.all(
    [...chosen].map(async ([member, address]) => ({ member, address, isReached: await reaches(address) })),
  )
  const describe = (list: typeof tried) =>
    list.map(({ member, address }) => `${address} on ${member}`).join(', ')
  const silent = tried.filter(({ isReached }) => !isReached)
  if (tried.length === 0) return ok('routing', 'not checked: no running VM has a public address')
  if (silent.length === 0) return ok('routing', `public addresses respond: ${describe(tried)}`)
  return warning(
    'routing',
    `no response on port ${sshPort} of ${describe(silent)}`,
    'check that a firewall rule of the VM allows connections to this port, and that the address is routed to the member (docs/operate/incus.md, "Routing of public addresses")',
  )
}
