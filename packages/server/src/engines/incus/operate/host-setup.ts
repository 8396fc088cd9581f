import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { run } from '../../qemu/command.ts'
import type { IncusContext } from '../context.ts'
import { filtersMark } from '../fleet/inventory.ts'
import type { Member, ServerInfo } from '../fleet/members.ts'
import { limitsMark } from '../traffic-control.ts'
import { filteringSetting } from './host-findings.ts'

const bootFiles = {
  '/etc/modules-load.d/slipway.conf': 'br_netfilter\n',
  '/etc/sysctl.d/60-slipway.conf': 'net.bridge.bridge-nf-call-iptables = 1\n',
}

/** Makes this machine's kernel filter traffic between guests on the same bridge, now and after every boot. */
export async function filterBetweenGuests(): Promise<void> {
  for (const [path, content] of Object.entries(bootFiles)) {
    if ((await readFile(path, 'utf8').catch(() => '')) === content) continue
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, content)
  }
  const setting = `/proc/${filteringSetting}`
  if (!existsSync(setting)) await run('modprobe', ['br_netfilter'])
  await writeFile(setting, '1')
}

/**
 * Records in Incus that this machine filters traffic between guests, and whether it can limit the bandwidth
 * of VMs. All Slipway services that use this Incus read the record.
 */
export async function markKernel(
  { client }: IncusContext,
  { environment }: ServerInfo,
  limitsNetwork: boolean,
  signal: AbortSignal,
): Promise<void> {
  const mark = { [filtersMark]: 'true', [limitsMark]: String(limitsNetwork) }
  if (!environment.server_clustered) return client.change('PATCH', '/1.0', { config: mark }, { signal })
  const path = `/1.0/cluster/members/${environment.server_name}`
  // A PUT removes everything that it omits, such as the member's roles.
  const member = await client.get<Pick<Member, 'config'>>(path, { signal })
  await client.change('PUT', path, { ...member, config: { ...member.config, ...mark } }, { signal })
}
