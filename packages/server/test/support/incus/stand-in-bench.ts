import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { IncusClient } from '../../../src/engines/incus/client.ts'
import { openConnections } from '../../../src/engines/incus/connections.ts'
import type { IncusContext } from '../../../src/engines/incus/context.ts'
import type { IncusEngine } from '../../../src/engines/incus/engine.ts'
import { createIncusEngine, type IncusOptions } from '../../../src/engines/incus/index.ts'
import { incusConfig } from './config.ts'
import { IncusStandIn } from './stand-in.ts'

export const signal = AbortSignal.timeout(600_000)

let dir: string
export let incus: IncusStandIn
let engine: IncusEngine | undefined
const clients: IncusClient[] = []

/**
 * Gives each test of the calling file a new fake Incus server, and an engine that is closed after the test.
 * The test files of one worker share this module, so each file has to call this function.
 */
export function useStandIn(): void {
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'swi-'))
    incus = await new IncusStandIn().open(join(dir, 'socket'))
    incus.recorded.set('/1.0/projects/slipway', {})
    incus.recorded.set('/1.0/resources', resourcesOf('a100-80gb-8x-two-nodes'))
    for (const path of [
      '/1.0/instances',
      '/1.0/network-acls',
      '/1.0/profiles',
      '/1.0/storage-pools/default/volumes/custom',
    ])
      incus.recorded.set(path, [])
  })
  afterEach(async () => {
    await engine?.close()
    engine = undefined
    for (const client of clients.splice(0)) await client.close()
    await incus.close()
    await rm(dir, { recursive: true })
  })
}

export async function open(
  changes: Record<string, unknown> = {},
  options: Partial<IncusOptions> = {},
): Promise<IncusEngine> {
  const config = incusConfig({
    ...{ socket: join(dir, 'socket'), instance_type: 'virtual-machine', ...changes },
  })
  engine = await createIncusEngine({ config, ...options })
  return engine
}

/** Returns a context that is connected to the fake, for parts of the engine. */
export async function contextOf(): Promise<IncusContext> {
  const config = incusConfig({ socket: join(dir, 'socket') })
  const client = new IncusClient(await openConnections(config), config.project)
  clients.push(client)
  return { client, config, answersSsh: async () => false }
}

export const member = (server_name: string, status = 'Online', config = {}) => ({
  ...{ server_name, status, message: '', config, roles: [] },
})

/** Returns the resources that Incus would report for a recorded sysfs tree. */
export function resourcesOf(name: string) {
  const path = join(import.meta.dirname, '../fixtures/sysfs', `${name}.json`)
  const { pci } = JSON.parse(readFileSync(path, 'utf8')) as {
    pci: Record<string, { files: Record<string, string>; links: Record<string, string> }>
  }
  const devices = Object.entries(pci).map(([pci_address, { files, links }]) => ({
    pci_address,
    vendor_id: files.vendor!.trim().slice(2),
    product_id: files.device!.trim().slice(2),
    numa_node: Math.max(0, Number(files.numa_node)),
    iommu_group: links.iommu_group ? Number(links.iommu_group.split('/').at(-1)) : 0,
    isDisplay: /^0x03/.test(files.class!),
  }))
  return {
    ...{ cpu: { total: 256 }, memory: { total: 2048 * 1024 ** 3 } },
    gpu: { cards: devices.filter(({ isDisplay }) => isDisplay) },
    pci: { devices },
  }
}
