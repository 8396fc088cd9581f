import { setTimeout as delay } from 'node:timers/promises'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import type { Answer, Client } from './client.ts'
import { locations } from './cluster.ts'
import { Random } from './random.ts'

/** What there is to act on, as far as tenants were told; they share it, and get in each other's way. */
export class Resources {
  readonly vms = new Map<string, { location: string }>()
  readonly disks = new Map<string, { location: string }>()
  readonly rules = new Set<string>()
}

const weights = {
  createVm: 20,
  stop: 14,
  start: 14,
  reset: 5,
  retype: 3,
  deleteVm: 12,
  createDisk: 8,
  attach: 10,
  detach: 8,
  grow: 4,
  deleteDisk: 5,
  createRule: 4,
  renameRule: 6,
  changeRule: 3,
  deleteRule: 3,
}
const rulePath = '/vpc/firewall-rules'
const mostVms = 14
const mostDisks = 10
const mostRules = 8
const patienceMs = 3_000

/** Somebody who uses the service without looking at how it fares. */
export class Tenant {
  readonly #client: Client
  readonly #resources: Resources
  readonly #networkId: string
  readonly #random: Random

  constructor(client: Client, resources: Resources, networkId: string, seed: number) {
    this.#client = client
    this.#resources = resources
    this.#networkId = networkId
    this.#random = new Random(seed)
  }

  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await delay(this.#random.between(20, 200))
      const answer = await this.#act()
      if (answer?.status !== 200) continue
      // Some wait for what they began, some do not.
      if (this.#random.isOneIn(2))
        await this.#client.untilEnded(answer.body.operation.operation_id, patienceMs)
    }
  }

  #act(): Promise<Answer | undefined> {
    const { vms, disks, rules } = this.#resources
    const [vmId, vm] = this.#any(vms)
    const [diskId, disk] = this.#any(disks)
    const ruleId = rules.size > 0 ? this.#random.pick([...rules]) : undefined
    const kind = this.#random.weighted(weights)
    const number = this.#random.between(1, 9)
    const gpus = this.#random.pick([1, 1, 2, 4])
    switch (kind) {
      case 'createVm':
        return this.#createVm(`vm-${number}`, gpus, diskId, disk?.location)
      case 'stop':
      case 'start':
      case 'reset':
        return this.#about(vmId, () => this.#change('/vms', vmId!, { action: kind.toUpperCase() }))
      case 'retype':
        return this.#about(vmId, () => this.#change('/vms', vmId!, { type: `a100.${gpus}x` }))
      case 'deleteVm':
        return this.#about(vmId, () => this.#remove('/vms', vmId!))
      case 'createDisk':
        return this.#createDisk(`disk-${number}`)
      case 'attach':
        return this.#about(vm && disk?.location === vm.location && diskId, () =>
          this.#client.begin('POST', `/vms/${vmId}/attach-disks`, {
            attach_disks: [{ disk_id: diskId, attachment_type: 'data', mode: 'read-write' }],
          }),
        )
      case 'detach':
        return this.#about(vmId && diskId, () =>
          this.#client.begin('POST', `/vms/${vmId}/detach-disks`, { detach_disks: [diskId] }),
        )
      case 'grow':
        return this.#about(diskId, () => this.#change('/disks', diskId!, { size: `${number * 10}GiB` }))
      case 'deleteDisk':
        return this.#about(diskId, () => this.#remove('/disks', diskId!))
      case 'createRule':
        return this.#createRule(`rule-${number}`, vmId)
      case 'renameRule':
        return this.#about(ruleId, () => this.#change(rulePath, ruleId!, { name: `rule-${number}` }))
      case 'changeRule':
        return this.#about(ruleId, () =>
          this.#change(rulePath, ruleId!, { destination_ports: [`${9_000 + number}`] }),
        )
      case 'deleteRule':
        return this.#about(ruleId, () => this.#remove(rulePath, ruleId!))
    }
  }

  async #about(isThere: unknown, act: () => Promise<Answer>): Promise<Answer | undefined> {
    return isThere ? act() : undefined
  }

  async #change(path: string, id: string, body: unknown): Promise<Answer> {
    const answer = await this.#client.begin('PATCH', `${path}/${id}`, body)
    if (answer.status === 404) this.#forget(id)
    return answer
  }

  async #remove(path: string, id: string): Promise<Answer> {
    const answer = await this.#client.begin('DELETE', `${path}/${id}`)
    if (answer.status === 200 || answer.status === 404) this.#forget(id)
    return answer
  }

  #forget(id: string): void {
    for (const known of Object.values(this.#resources)) known.delete(id)
  }

  async #createVm(name: string, gpus: number, diskId: string | undefined, diskLocation: string | undefined) {
    if (this.#resources.vms.size >= mostVms) return undefined
    const location = this.#random.pick(locations)
    const takesDisk = diskLocation === location && this.#random.isOneIn(3)
    const answer = await this.#client.begin('POST', '/vms', {
      ...{ name, location, type: `a100.${gpus}x`, image: 'ubuntu24.04-nvidia:latest' },
      ...{ ssh_public_key: sshKey, ...(takesDisk && { disks: [{ disk_id: diskId }] }) },
    })
    if (answer.status === 200) this.#resources.vms.set(idOf(answer), { location })
    return answer
  }

  async #createDisk(name: string) {
    if (this.#resources.disks.size >= mostDisks) return undefined
    const location = this.#random.pick(locations)
    const answer = await this.#client.begin('POST', '/disks', { name, location, size: '10GiB' })
    if (answer.status === 200) this.#resources.disks.set(idOf(answer), { location })
    return answer
  }

  async #createRule(name: string, vmId: string | undefined) {
    if (this.#resources.rules.size >= mostRules) return undefined
    const answer = await this.#client.begin('POST', rulePath, {
      ...{ name, vpc_network_id: this.#networkId, action: 'allow', direction: 'ingress' },
      ...{ protocols: ['tcp'], sources: [{ cidr: '203.0.113.0/24' }], destination_ports: ['8888'] },
      destinations: [{ resource_id: vmId ?? this.#networkId }],
    })
    if (answer.status === 200) this.#resources.rules.add(idOf(answer))
    return answer
  }

  #any<Value>(map: Map<string, Value>): [string, Value] | [undefined, undefined] {
    return map.size > 0 ? this.#random.pick([...map]) : [undefined, undefined]
  }
}

const idOf = (answer: Answer): string => answer.body.operation.metadata.id
