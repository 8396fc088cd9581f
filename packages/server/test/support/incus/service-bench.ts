import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from '@slipway/testing/eventually.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { offerImages } from '../../../src/setup/apply-config.ts'
import { IncusBench, type IncusMember } from '../incus-bench.ts'
import { incusConfig } from './config.ts'
import { Relay } from './relay.ts'

const exec = promisify(execFile)
export const location = 'gpu-a'

/** Three members with agents, and a service that reaches each of them over HTTPS. */
export class ServiceBench {
  readonly bench: IncusBench
  readonly service: TestService
  readonly relays: Map<IncusMember, Relay>

  private constructor(bench: IncusBench, service: TestService, relays: Map<IncusMember, Relay>) {
    this.bench = bench
    this.service = service
    this.relays = relays
  }

  static async open(): Promise<ServiceBench> {
    const bench = await IncusBench.cluster(3)
    const relays = new Map(
      bench.members.map((member) => [member, new Relay(bench, `${member.dir}.relay`, member.address, 8443)]),
    )
    try {
      await bench.startAgents()
      const ports = await Promise.all([...relays.values()].map((relay) => relay.open()))
      const urls = ports.map((port) => `https://${port}`)
      const files = await trust(bench)
      const given = { instance_type: 'container', allow_unfiltered_internal: true, urls, ...files }
      const incus = { ...incusConfig(given), gpus: [{ model: 'A100 80GB PCIe', count: 16 }] }
      const service = await startService((config) => {
        const place = { name: location, description: '', engine: 'incus', storage: 'local', publicIpv4: '' }
        config.locations = [...config.locations.slice(0, 1), { ...place, incus } as never]
      })
      const opened = new ServiceBench(bench, service, relays)
      const image = { name: 'guest:latest', description: '', tags: [], source: await opened.#imageSource() }
      await offerImages(service.database, location, [image])
      await eventually(
        async () => (await opened.hosts()).filter(({ state }) => state === 'up').length === 3,
        60_000,
      )
      return opened
    } catch (error) {
      for (const relay of relays.values()) relay.close()
      await bench.close()
      throw error
    }
  }

  async #imageSource(): Promise<{ fingerprint: string }> {
    const listed = await this.bench.members[0]!.cli('query', '/1.0/images?recursion=1&project=slipway')
    const [image] = JSON.parse(listed) as { fingerprint: string }[]
    return { fingerprint: image!.fingerprint }
  }

  async hosts() {
    const token = this.service.credentials.operator_key
    const { items } = await this.service.ok('adminHostList', { token, query: { location } })
    return items
  }

  async close(): Promise<void> {
    await this.service.close()
    for (const relay of this.relays.values()) relay.close()
    await this.bench.close()
  }
}

/** Makes the cluster trust a new client. Returns the files of the client. */
async function trust(bench: IncusBench): Promise<Record<string, string>> {
  const [first] = bench.members
  const env = { ...process.env, INCUS_CONF: bench.dir }
  await exec('incus', ['remote', 'generate-certificate'], { env })
  const files = {
    client_cert_file: join(bench.dir, 'client.crt'),
    client_key_file: join(bench.dir, 'client.key'),
    server_cert_file: join(bench.dir, 'server.crt'),
  }
  await first!.cli('config', 'trust', 'add-certificate', files.client_cert_file)
  await writeFile(files.server_cert_file, await readFile(join(first!.dir, 'cluster.crt')))
  return files
}
