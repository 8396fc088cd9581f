import { createInterface } from 'node:readline'
import type { IncusConfig } from '../../../config/index.ts'
import { EngineError } from '../../engine.ts'
import { run } from '../../qemu/command.ts'
import { withIncus } from '../context.ts'
import { serverInfo } from '../fleet/members.ts'
import { canLimitNetwork, limitsAdvice } from '../traffic-control.ts'
import { filterBetweenGuests, markKernel } from './host-setup.ts'

export interface JoinOptions {
  /** Returns what `incus cluster add NAME` printed on a member. */
  readToken: () => Promise<string>
  address: string
  storageSource: string
  say: (line: string) => void
}

const joinMs = 180_000

/**
 * Returns the first line that can be a token, without waiting for the end of the input. `incus cluster add`
 * prints a sentence before the token.
 */
export async function readPastedToken(input: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input })) if (/^\S+$/.test(line.trim())) return line.trim()
  return ''
}

/** Adds this machine's daemon to the token's cluster. */
export function join(config: IncusConfig, options: JoinOptions): Promise<void> {
  return withIncus(config, 'default', async (ctx) => {
    const signal = AbortSignal.timeout(joinMs)
    const { say } = options
    const { environment } = await serverInfo(ctx, signal)
    await filterBetweenGuests()
    say('bridge filtering: enabled, now and after every reboot')
    if (environment.server_clustered) say(`cluster: ${environment.server_name} is already a member`)
    else say(`cluster: ${await joinCluster(ctx.config, options)} joined`)
    const limitsNetwork = await canLimitNetwork()
    say(`network limits: ${limitsNetwork ? 'possible' : `not possible: ${limitsAdvice}`}`)
    await markKernel(ctx, await serverInfo(ctx, signal), limitsNetwork, signal)
  })
}

/** Uses Incus's own client, which compares the cluster's certificate with the token. */
async function joinCluster(config: IncusConfig, options: JoinOptions): Promise<string> {
  const token = await options.readToken()
  const { server_name } = readToken(token)
  const cluster = {
    ...{ server_name, enabled: true, server_address: options.address, cluster_token: token },
    member_config: [
      { entity: 'storage-pool', name: config.storagePool, key: 'source', value: options.storageSource },
    ],
  }
  await run('incus', ['admin', 'init', '--preseed'], {
    timeoutMs: joinMs,
    env: { INCUS_SOCKET: config.socket },
    input: JSON.stringify({ cluster }),
  })
  return server_name
}

function readToken(token: string): { server_name: string } {
  try {
    const { server_name } = JSON.parse(Buffer.from(token, 'base64').toString('utf8'))
    if (typeof server_name === 'string') return { server_name }
  } catch {}
  throw new EngineError(
    'rejected',
    'standard input has no valid token: run incus cluster add NAME on a member to get one',
  )
}
