import {
  agentKey,
  guestNetworkKey,
  guestNetworkOf,
  versionOf,
} from '../../../src/engines/incus/agent/guest-network.ts'
import { IncusStandIn, type ReceivedRequest } from './stand-in.ts'

interface StoredInstance {
  name: string
  status: string
  location: string
  last_used_at: string
  profiles: string[]
  config: Record<string, string>
  devices: Record<string, Record<string, string>>
}

/**
 * A cluster that stores its instances, and whose members have agents that apply every network immediately.
 */
export class ClusterWithAgents extends IncusStandIn {
  readonly instances = new Map<string, StoredInstance>()
  /** Members whose agents apply nothing. */
  readonly silentAgents = new Set<string>()
  /** The names of the instances of each member. */
  readonly #namesAt = new Map<string, Set<string>>()
  /** The VM and the version of each network configuration, by the text of the configuration. */
  readonly #versions = new Map<string, [string, string]>()

  constructor(members: string[]) {
    super()
    this.recorded.set('/1.0/projects/slipway', {})
    for (const path of [
      '/1.0/networks',
      '/1.0/network-acls',
      '/1.0/profiles',
      '/1.0/storage-pools/default/volumes/custom',
    ])
      this.recorded.set(path, [])
    this.recorded.set('/1.0/resources', {
      ...{ cpu: { total: 8 }, memory: { total: 2 ** 34 }, gpu: { cards: [] }, pci: { devices: [] } },
    })
    this.recorded.set('/1.0/instances', () => [...this.instances.values()])
    for (const name of members) this.recorded.set(`/1.0/cluster/members/${name}`, () => this.#member(name))
    this.recorded.set('/1.0/cluster/members', () => members.map((name) => this.#member(name)))
    this.recorded.set('POST /1.0/instances', ({ body, query }: ReceivedRequest) => {
      const given = body as StoredInstance
      this.put({ ...given, status: 'Stopped', location: query.get('target') ?? 'm1', last_used_at: 'never' })
      return {}
    })
    this.recorded.set('POST /1.0/profiles', ({ body }: ReceivedRequest) => {
      this.recorded.set(`/1.0/profiles/${(body as { name: string }).name}`, body)
      return {}
    })
  }

  put(instance: StoredInstance): void {
    const path = `/1.0/instances/${instance.name}`
    this.instances.set(instance.name, instance)
    const names = this.#namesAt.get(instance.location) ?? new Set()
    this.#namesAt.set(instance.location, names.add(instance.name))
    this.recorded.set(path, () => this.instances.get(instance.name))
    this.recorded.set(`PUT ${path}`, ({ body }: ReceivedRequest) => {
      this.instances.set(instance.name, {
        ...this.instances.get(instance.name)!,
        ...(body as StoredInstance),
      })
      return {}
    })
    this.recorded.set(`PUT ${path}/state`, ({ body }: ReceivedRequest) => {
      const { action } = body as { action: string }
      const before = this.instances.get(instance.name)!
      const status = action === 'stop' ? 'Stopped' : 'Running'
      const config = { ...before.config, 'volatile.last_state.power': status.toUpperCase() }
      this.instances.set(instance.name, { ...before, status, config })
      return {}
    })
  }

  /** The writes that were received, as method and path. */
  get written(): string[] {
    return this.asked.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`)
  }

  #member(name: string) {
    const own = [...(this.#namesAt.get(name) ?? [])].flatMap((one) => this.instances.get(one) ?? [])
    const applied = Object.fromEntries(own.flatMap(({ config }) => this.#versionIn(config)))
    const report = JSON.stringify({
      filtersInternal: true,
      applied: this.silentAgents.has(name) ? {} : applied,
    })
    return { server_name: name, status: 'Online', message: '', config: { [agentKey]: report }, roles: [] }
  }

  #versionIn(config: Record<string, string>): [string, string][] {
    const text = config[guestNetworkKey]
    if (!text) return []
    const known = this.#versions.get(text)
    if (known) return [known]
    const guest = guestNetworkOf(config)!
    const version: [string, string] = [guest.vmId, versionOf(guest)]
    this.#versions.set(text, version)
    return [version]
  }
}
