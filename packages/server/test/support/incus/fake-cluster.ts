import { setTimeout as sleep } from 'node:timers/promises'
import { ClusterWithAgents } from './agent-stand-in.ts'
import type { ReceivedRequest } from './stand-in.ts'

export const fingerprint = '5e'.repeat(32)

/** Incus shows a member as offline when it has not received a heartbeat for this time (its default). */
const offlineThresholdMs = 20_000

export interface FakeClusterOptions {
  members: number
  instancesPerMember: number
  /** Members whose machines are off, and which Incus shows as offline. */
  dead: number
  /** Members that are online but do not respond. */
  hanging: number
  /** The longest delay of a member. */
  delayMs: number
}

/**
 * A fake cluster that is larger than any test machine can run, with members that respond after different delays, dead
 * members and members that hang. A request that changes an instance waits for the member of the instance, as in Incus.
 */
export class FakeCluster extends ClusterWithAgents {
  readonly names: string[]
  /** How each member behaves now; the key is its name. */
  readonly behavior = new Map<string, 'dead' | 'hanging'>()
  readonly #options: FakeClusterOptions
  /** When each member that is off sent its last heartbeat. */
  readonly #lastHeartbeatMs = new Map<string, number>()

  constructor(options: FakeClusterOptions) {
    const names = Array.from({ length: options.members }, (_, index) => `m${index + 1}`)
    super(names)
    this.names = names
    this.#options = options
    const { dead, hanging } = options
    for (const name of names.slice(0, dead)) this.behavior.set(name, 'dead')
    for (const name of names.slice(dead, dead + hanging)) this.behavior.set(name, 'hanging')
    const members = this.recorded.get('/1.0/cluster/members') as () => { server_name: string }[]
    this.recorded.set('/1.0/cluster/members', () =>
      members().map((member) => ({
        ...member,
        status: this.#isOffline(member.server_name) ? 'Offline' : 'Online',
      })),
    )
    const resources = this.recorded.get('/1.0/resources')
    this.recorded.set('/1.0/resources', ({ query }: ReceivedRequest) =>
      this.#at(query.get('target') ?? 'm1', () => resources),
    )
    this.recorded.set('/1.0/images/aliases/guest%3Alatest', { target: fingerprint })
    this.recorded.set(`/1.0/images/${fingerprint}`, { type: 'container' })
    const create = this.recorded.get('POST /1.0/instances') as (asked: ReceivedRequest) => unknown
    this.recorded.set('POST /1.0/instances', (asked: ReceivedRequest) =>
      this.#at(asked.query.get('target')!, () => {
        const { name } = asked.body as { name: string }
        const result = create(asked)
        this.#addEvents(name)
        return result
      }),
    )
    for (const location of names)
      for (let index = 0; index < options.instancesPerMember; index++) this.#addOld(location, index)
  }

  /** Switches the machine of a member off. */
  switchOff(name: string): void {
    this.behavior.set(name, 'dead')
    this.#lastHeartbeatMs.set(name, performance.now())
  }

  #isOffline(name: string): boolean {
    const lastHeartbeatMs = this.#lastHeartbeatMs.get(name) ?? Number.NEGATIVE_INFINITY
    return this.behavior.get(name) === 'dead' && performance.now() - lastHeartbeatMs > offlineThresholdMs
  }

  /** Adds an instance that does not belong to Slipway and only makes lists longer. */
  #addOld(location: string, index: number): void {
    const name = `old-${location}-${index}`
    const config = { 'limits.cpu': '8', 'user.owner': 'another', 'volatile.last_state.power': 'RUNNING' }
    const devices = { root: { type: 'disk', path: '/', pool: 'default' } }
    this.instances.set(name, {
      name,
      status: 'Running',
      location,
      last_used_at: '',
      profiles: [],
      config,
      devices,
    })
  }

  /** Makes each change of an instance send an event, as Incus does. */
  #addEvents(name: string): void {
    for (const path of [`PUT /1.0/instances/${name}`, `PUT /1.0/instances/${name}/state`]) {
      const change = this.recorded.get(path) as (asked: ReceivedRequest) => unknown
      const location = this.instances.get(name)!.location
      this.recorded.set(path, (asked: ReceivedRequest) =>
        this.#at(location, () => {
          const result = change(asked)
          this.tell({
            type: 'lifecycle',
            location,
            metadata: { source: `/1.0/instances/${name}?project=slipway` },
          })
          return result
        }),
      )
    }
  }

  async #at<T>(member: string, work: () => T): Promise<T | undefined> {
    // A request to a machine that is off has no response either.
    if (this.behavior.has(member)) return new Promise(() => {})
    // The same delay for each request to a member.
    await sleep(1 + ((this.names.indexOf(member) * 7) % this.#options.delayMs))
    return work()
  }
}
