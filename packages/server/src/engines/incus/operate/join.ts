import { execFile } from 'node:child_process'
import type { IncusConfig } from '../../../config/index.ts'
import { EngineError } from '../../engine.ts'
import { filterBetweenGuests, markFiltering } from './host-setup.ts'
import { type ServerInfo, withOperator } from './operator.ts'

export interface JoinOptions {
  /** Returns what `incus cluster add NAME` printed on a member. */
  readToken: () => Promise<string>
  address: string
  storageSource: string
  say: (line: string) => void
}

const joinMs = 180_000

/** Makes the daemon of this machine a member of the cluster that the token is of. */
export function join(config: IncusConfig, options: JoinOptions): Promise<void> {
  return withOperator(config, async (ctx) => {
    const signal = AbortSignal.timeout(joinMs)
    const { say } = options
    const { environment } = await ctx.client.get<ServerInfo>('/1.0', { signal })
    await filterBetweenGuests()
    say('bridge filtering: on, and at every boot')
    if (environment.server_clustered) say(`cluster: ${environment.server_name} is a member`)
    else say(`cluster: ${await enter(ctx.config, options)} joined`)
    await markFiltering(ctx, await ctx.client.get<ServerInfo>('/1.0', { signal }), signal)
  })
}

/** By Incus's own client, which asks the cluster for its certificate and holds it against the token. */
async function enter(config: IncusConfig, options: JoinOptions): Promise<string> {
  const token = await options.readToken()
  const { server_name } = readToken(token)
  const cluster = {
    ...{ server_name, enabled: true, server_address: options.address, cluster_token: token },
    member_config: [
      { entity: 'storage-pool', name: config.storagePool, key: 'source', value: options.storageSource },
    ],
  }
  await preseed(config.socket, JSON.stringify({ cluster }))
  return server_name
}

function readToken(token: string): { server_name: string } {
  try {
    const { server_name } = JSON.parse(Buffer.from(token, 'base64').toString('utf8'))
    if (typeof server_name === 'string') return { server_name }
  } catch {}
  throw new EngineError(
    'rejected',
    'what was read is no token: incus cluster add NAME on a member prints one',
  )
}

/** JSON is YAML. */
function preseed(socket: string, yaml: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, INCUS_SOCKET: socket }
    const child = execFile(
      'incus',
      ['admin', 'init', '--preseed'],
      { env, timeout: joinMs },
      (error, _, stderr) =>
        error ? reject(new EngineError('unavailable', stderr.trim() || error.message)) : resolve(),
    )
    child.stdin!.end(yaml)
  })
}
