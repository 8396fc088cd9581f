import type { LocationConfig } from '../../../config/index.ts'
import type { IncusContext } from '../context.ts'
import { findUplink } from '../networks.ts'
import { certificateFinding } from './certificate-finding.ts'
import { type Finding, missing, ok } from './finding.ts'
import { type HostFiles, hostFindings } from './host-findings.ts'
import { type ServerInfo, withOperator } from './operator.ts'
import {
  guestsFinding,
  imageFinding,
  memberFindings,
  type Network,
  networkFinding,
  overlapFinding,
  ownRanges,
  projectFinding,
  storageFinding,
  versionFinding,
} from './server-findings.ts'

const lookMs = 30_000

export type IncusLocation = Extract<LocationConfig, { engine: 'incus' }>

/**
 * Everything that a location needs to run VMs, in the order of docs/operate/incus.md. The kernel is that of this machine,
 * so it is looked at only where Incus is reached by its socket. Changes nothing.
 */
export async function examine(location: IncusLocation, host: HostFiles): Promise<Finding[]> {
  const { incus } = location
  const isHere = incus.urls.length === 0
  const hostPart = isHere ? await hostFindings(host, incus.instanceType === 'virtual-machine') : []
  const certificate = await certificateFinding(incus, Date.now())
  if (certificate.verdict === 'missing') return [...hostPart, certificate]
  const signal = AbortSignal.timeout(lookMs)
  const serverPart = await withOperator(incus, (ctx) => serverFindings(ctx, location, isHere, signal))
  return [...hostPart, certificate, ...serverPart]
}

async function serverFindings(
  ctx: IncusContext,
  location: IncusLocation,
  isHere: boolean,
  signal: AbortSignal,
): Promise<Finding[]> {
  const place = isHere ? ctx.config.socket : ctx.config.urls.join(', ')
  const info = await ctx.client.get<ServerInfo>('/1.0', { signal }).catch((error: Error) => error)
  if (info instanceof Error) return [unreachable(info, place, isHere)]
  if (info.auth !== 'trusted')
    return [
      missing(
        'daemon',
        `Incus at ${place} does not know the client certificate`,
        `incus config trust add-certificate ${ctx.config.clientCertFile} on a member; or slipway-server incus init there`,
      ),
    ]
  const networks = await ctx.client.get<Network[]>('/1.0/networks', { signal, query: { recursion: '1' } })
  const project = await projectFinding(ctx, signal)
  const uplink = await findUplink(ctx, signal)
  return [
    ok('daemon', `Incus answers at ${place}`),
    versionFinding(info),
    guestsFinding(ctx, info),
    project,
    await storageFinding(ctx, info, location.storage === 'shared', signal),
    networkFinding(info, location.publicIpv4, uplink),
    overlapFinding(networks, isHere ? ownRanges() : []),
    ...(await memberFindings(ctx, uplink !== undefined, signal)),
    ...(project.verdict === 'ok' ? [await imageFinding(ctx, signal)] : []),
  ]
}

function unreachable(error: Error, place: string, isHere: boolean): Finding {
  const { code, message } = (error.cause ?? error) as NodeJS.ErrnoException
  if (isHere && code === 'EACCES')
    return missing(
      'daemon',
      `this user may not use ${place}`,
      'run as root, or as a member of the group incus-admin',
    )
  return isHere
    ? missing(
        'daemon',
        `there is no Incus at ${place}`,
        'apt-get install incus (Debian 12: from bookworm-backports); systemctl start incus',
      )
    : missing(
        'daemon',
        `Incus does not answer at ${place}: ${message}`,
        'systemctl status incus on the members; is port 8443 open from here?',
      )
}
