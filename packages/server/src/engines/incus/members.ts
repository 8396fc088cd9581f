import type { IncusContext } from './context.ts'

export interface Member {
  name: string
  /** Online, Offline, Evacuated, Blocked. */
  status: string
  message: string
  config: Record<string, string>
}

interface ServerInfo {
  config: Record<string, string>
  environment: {
    architectures: string[]
    server_clustered: boolean
    server_name: string
    server_version: string
    kernel_version: string
    storage_supported_drivers?: { Name: string; Remote: boolean }[]
  }
}

export const serverInfo = (ctx: IncusContext, signal: AbortSignal) =>
  ctx.client.get<ServerInfo>('/1.0', { signal })

/** A server alone is its own and only member. */
export async function listMembers(
  ctx: IncusContext,
  signal: AbortSignal,
): Promise<{ members: Member[]; isCluster: boolean }> {
  const { environment, config } = await serverInfo(ctx, signal)
  if (!environment.server_clustered)
    return {
      members: [{ name: environment.server_name, status: 'Online', message: '', config }],
      isCluster: false,
    }
  const members = await ctx.client.get<(Omit<Member, 'name'> & { server_name: string })[]>(
    '/1.0/cluster/members',
    {
      signal,
      query: { recursion: '1' },
    },
  )
  return { members: members.map((member) => ({ ...member, name: member.server_name })), isCluster: true }
}

/** Null where there is no cluster, and so nothing to choose. */
export async function memberNames(ctx: IncusContext, signal: AbortSignal): Promise<string[] | null> {
  const { members, isCluster } = await listMembers(ctx, signal)
  return isCluster ? members.map(({ name }) => name) : null
}
