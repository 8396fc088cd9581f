import { EngineError } from '../../engine.ts'
import { type IncusClient, isCode, unavailable } from '../client.ts'
import type { IncusContext } from '../context.ts'

export interface Member {
  name: string
  /** Online, Offline, Evacuated, Blocked. */
  status: string
  message: string
  config: Record<string, string>
}

/** The part of `GET /1.0` that Slipway uses. */
export interface ServerInfo {
  auth: 'trusted' | 'untrusted'
  config: Record<string, string>
  environment: {
    architectures: string[]
    certificate: string
    /** `lxc`, `qemu`, or both separated by a bar. */
    driver: string
    firewall: string
    server_clustered: boolean
    server_name: string
    server_version: string
    storage_supported_drivers?: { Name: string; Remote: boolean }[]
  }
}

/** Throws if Incus does not trust the client: the response then has no environment. */
export async function serverInfo(ctx: IncusContext, signal: AbortSignal): Promise<ServerInfo> {
  const info = await ctx.client.get<ServerInfo>('/1.0', { signal })
  if (info.auth === 'untrusted')
    throw new EngineError(
      'unavailable',
      `Incus does not trust the client certificate: ${trustCommand(ctx.config.clientCertFile)}`,
    )
  return info
}

export const trustCommand = (clientCertFile: string) =>
  `run incus config trust add-certificate ${clientCertFile}, or slipway-server incus init, on a member`

const environmentMs = 60_000
const environments = new WeakMap<IncusClient, { read: Promise<ServerInfo['environment']>; atMs: number }>()

/** Returns the server's version and type. They rarely change, so they are read at most once a minute. */
export function environmentOf(ctx: IncusContext, signal: AbortSignal): Promise<ServerInfo['environment']> {
  const known = environments.get(ctx.client)
  if (known && performance.now() - known.atMs < environmentMs) return known.read
  const read = serverInfo(ctx, signal).then(({ environment }) => environment)
  environments.set(ctx.client, { read, atMs: performance.now() })
  read.catch(() => environments.delete(ctx.client))
  return read
}

export interface MemberList {
  members: Member[]
  isCluster: boolean
}

/** Lists the members. A server without a cluster counts as its only member. */
export async function listMembers(ctx: IncusContext, signal: AbortSignal): Promise<MemberList> {
  if (!(await isClustered(ctx, signal))) {
    const { environment, config } = await serverInfo(ctx, signal)
    const only = { name: environment.server_name, status: 'Online', message: '', config }
    return { members: [only], isCluster: false }
  }
  const options = { signal, query: { recursion: '1' } }
  const members = await ctx.client.get<(Omit<Member, 'name'> & { server_name: string })[]>(
    '/1.0/cluster/members',
    options,
  )
  return { members: members.map((member) => ({ ...member, name: member.server_name })), isCluster: true }
}

/** Returns null if there is no cluster. */
export async function memberNames(ctx: IncusContext, signal: AbortSignal): Promise<string[] | null> {
  const { members, isCluster } = await listMembers(ctx, signal)
  return isCluster ? members.map(({ name }) => name) : null
}

export const isClustered = async (ctx: IncusContext, signal: AbortSignal) =>
  (await environmentOf(ctx, signal)).server_clustered

/** Returns options that direct a call to one member. Without a cluster, they have no target. */
export const targetOptions = async (ctx: IncusContext, member: string, signal: AbortSignal) => ({
  signal,
  ...((await isClustered(ctx, signal)) && { query: { target: member } }),
})

const memberPath = (name: string) => `/1.0/cluster/members/${encodeURIComponent(name)}`

export const findMember = ({ client }: IncusContext, name: string, signal: AbortSignal) =>
  client.get<Pick<Member, 'config'>>(memberPath(name), { signal })

const maxAttempts = 5

/**
 * Changes only the keys that `decide` returns; '' removes a key. `decide` returns null if nothing has to
 * change. Incus merges a PATCH with the stored configuration in the transaction that writes it, so that a
 * concurrent change of other keys is not lost. It compares the ETag in an earlier transaction, so a PUT of
 * the whole configuration could overwrite such a change. Even a PATCH lost a change in one test, so the
 * service checks the cordon at each inspection, and the agent checks its report at each full read.
 */
export async function changeMember(
  { client }: IncusContext,
  name: string,
  signal: AbortSignal,
  decide: (member: Member) => Record<string, string> | null,
): Promise<void> {
  const path = memberPath(name)
  for (let attempt = 1; ; attempt++) {
    const { value: member, etag } = await client.getTagged<Member>(path, { signal })
    const config = decide(member)
    if (!config) return
    try {
      // Outside the configuration, a PATCH replaces everything, such as the member's roles, so all of it is
      // sent.
      return await client.change('PATCH', path, { ...member, config }, { signal, ifMatch: etag })
    } catch (error) {
      if (!isCode(error, 412) || attempt === maxAttempts) throw unavailable(error)
    }
  }
}
