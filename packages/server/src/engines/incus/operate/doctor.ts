import type { IncusConfig, LocationConfig } from '../../../config/index.ts'
import { type IncusContext, withIncus } from '../context.ts'
import { adviceOf } from '../error-texts.ts'
import { type ServerInfo, trustCommand } from '../fleet/members.ts'
import { findUplink } from '../networks.ts'
import { canLimitNetwork, limitsAdvice } from '../traffic-control.ts'
import { certificateFinding } from './certificate-finding.ts'
import { type Finding, ok, problem } from './finding.ts'
import { type HostFiles, hostFindings } from './host-findings.ts'
import { reachesByTcp, routingFinding } from './routing-finding.ts'
import {
  guestsFinding,
  imageFinding,
  memberFindings,
  type Network,
  networkFinding,
  overlapFinding,
  ownRanges,
  projectFinding,
  storageFindings,
  versionFinding,
} from './server-findings.ts'

const checkMs = 30_000
const urlMs = 5_000

export type IncusLocation = Extract<LocationConfig, { engine: 'incus' }>

/**
 * Checks everything that a location needs to run VMs, in the order of docs/operate/incus.md, and changes
 * nothing. The kernel of this machine is checked only if Incus is reached through its socket.
 */
export async function examine(location: IncusLocation, host: HostFiles): Promise<Finding[]> {
  const { incus } = location
  const isLocal = incus.urls.length === 0
  const hostResults = isLocal ? await hostFindings(host, incus.instanceType === 'virtual-machine') : []
  const certificate = await certificateFinding(incus, Date.now())
  if (certificate.verdict === 'problem') return [...hostResults, certificate]
  const signal = AbortSignal.timeout(checkMs)
  const urlResults = await Promise.all(incus.urls.map((url) => urlFinding(incus, url)))
  const serverResults = await withIncus(incus, 'default', (ctx) =>
    serverFindings(ctx, location, isLocal, signal),
  )
  return [...hostResults, certificate, ...urlResults, ...serverResults]
}

/** The service works while at least one URL responds, so it would not notice a dead URL. */
function urlFinding(config: IncusConfig, url: string): Promise<Finding> {
  return withIncus({ ...config, urls: [url] }, 'default', async ({ client }) => {
    const signal = AbortSignal.timeout(urlMs)
    const failed = await client.get<ServerInfo>('/1.0', { signal }).then(
      () => null,
      (error: Error) => error,
    )
    if (!failed) return ok(`URL ${url}`, 'responds')
    const { message } = (failed.cause ?? failed) as Error
    return problem(
      `URL ${url}`,
      `does not respond: ${message}`,
      adviceOf(failed) || 'run systemctl status incus there',
    )
  })
}

async function serverFindings(
  ctx: IncusContext,
  location: IncusLocation,
  isLocal: boolean,
  signal: AbortSignal,
): Promise<Finding[]> {
  const address = isLocal ? ctx.config.socket : ctx.config.urls.join(', ')
  const info = await ctx.client.get<ServerInfo>('/1.0', { signal }).catch((error: Error) => error)
  if (info instanceof Error) return [unreachableFinding(info, address, isLocal)]
  if (info.auth !== 'trusted')
    return [
      problem(
        'daemon',
        `Incus at ${address} does not trust the client certificate`,
        trustCommand(ctx.config.clientCertFile),
      ),
    ]
  const networks = await ctx.client.get<Network[]>('/1.0/networks', { signal, query: { recursion: '1' } })
  const project = await projectFinding(ctx, signal)
  const uplink = await findUplink(ctx, signal)
  return [
    ok('daemon', `Incus responds at ${address}`),
    versionFinding(info),
    guestsFinding(ctx, info),
    project,
    ...(await storageFindings(ctx, info, location.storage === 'shared', signal)),
    networkFinding(info, location.publicIpv4, uplink),
    overlapFinding(networks, isLocal ? ownRanges() : []),
    ...(isLocal && uplink === undefined ? await limitsFindings(ctx.config) : []),
    ...(await memberFindings(ctx, uplink !== undefined, signal)),
    ...(project.verdict === 'ok'
      ? [await imageFinding(ctx, signal), await routingFinding(ctx, reachesByTcp, signal)]
      : []),
  ]
}

/** Only root can test this, so there is no finding for other users. */
async function limitsFindings({ networkLimits }: IncusConfig): Promise<Finding[]> {
  if (!networkLimits || process.getuid?.() !== 0) return []
  return [
    (await canLimitNetwork())
      ? ok('network limits', 'the kernel can limit the bandwidth of VMs')
      : problem('network limits', "this machine's kernel cannot limit the bandwidth of VMs", limitsAdvice),
  ]
}

function unreachableFinding(error: Error, address: string, isLocal: boolean): Finding {
  const { code, message } = (error.cause ?? error) as NodeJS.ErrnoException
  if (isLocal && code === 'EACCES')
    return problem(
      'daemon',
      `this user has no access to ${address}`,
      'run this as root, or as a member of the group incus-admin',
    )
  return isLocal
    ? problem(
        'daemon',
        `no Incus found at ${address}`,
        'apt-get install incus (Debian 12: from bookworm-backports); systemctl start incus',
      )
    : problem(
        'daemon',
        `Incus does not respond at ${address}: ${message}`,
        'run systemctl status incus on the members, and check that port 8443 is open from here',
      )
}
