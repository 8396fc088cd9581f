import { setTimeout as delay } from 'node:timers/promises'
import type { CapacityRequest, Disk, FirewallRule, InstanceGroup, Vm } from '@slipway/contract'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import type { ApiResponse, Client } from './client.ts'
import { locations } from './cluster.ts'
import { Random } from './random.ts'

const weights = {
  createVm: 16,
  stop: 14,
  start: 14,
  reset: 5,
  replace: 4,
  retype: 4,
  deleteVm: 6,
  createDisk: 8,
  attach: 12,
  detach: 9,
  grow: 4,
  deleteDisk: 3,
  createRule: 4,
  renameRule: 6,
  changeRule: 3,
  deleteRule: 3,
  createGroup: 5,
  resizeGroup: 4,
  deleteGroup: 4,
  waitForVm: 5,
  waitForGroup: 3,
  claim: 4,
  cancel: 3,
}
const mostVms = 14
const mostGroups = 3
const mostRequests = 6
const mostDisks = 10
const mostRules = 8
const patienceMs = 3_000
const rulePath = '/vpc/firewall-rules'
const groupPath = '/instance-groups'
const requestPath = '/capacity-requests'

/** The project when a tenant last read it. Other tenants change the project concurrently. */
interface ProjectState {
  vms: Vm[]
  disks: Disk[]
  rules: FirewallRule[]
  groups: InstanceGroup[]
  /** Capacity requests that have not ended. */
  requests: CapacityRequest[]
}

/** A tenant that uses the service in spite of faults, and whose changes conflict with those of other tenants. */
export class Tenant {
  readonly #client: Client
  readonly #networkId: string
  readonly #random: Random

  constructor(client: Client, networkId: string, seed: number) {
    this.#client = client
    this.#networkId = networkId
    this.#random = new Random(seed)
  }

  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await delay(this.#random.between(20, 200))
      const response = await this.#act(await this.#readProject())
      if (response?.status !== 200) continue
      // A tenant waits for about half of the operations that it started.
      if (this.#random.isOneIn(2))
        await this.#client.untilEnded(response.body.operation.operation_id, patienceMs)
    }
  }

  async #readProject(): Promise<ProjectState> {
    const paths = ['/vms', '/disks', rulePath, '/instance-groups', requestPath]
    const [vms, disks, rules, groups, requests] = await Promise.all(
      paths.map(async (path) => (await this.#client.get(path)).body.items ?? []),
    )
    return {
      ...{ vms, disks, groups },
      // The initial rules are kept.
      rules: rules.filter(({ name }: FirewallRule) => name.startsWith('rule-')),
      requests: requests.filter(({ state }: CapacityRequest) => state === 'waiting' || state === 'held'),
    }
  }

  /** Does a random action. Returns undefined if it is not an operation, or if there is no resource for it. */
  async #act({ vms, disks, rules, groups, requests }: ProjectState): Promise<ApiResponse | undefined> {
    const kind = this.#random.weighted(weights)
    const number = this.#random.between(1, 12)
    const type = `a100.${this.#random.pick([1, 1, 2, 4])}x`
    const vm = this.#any(vms, ({ state }) => statesFor[kind]?.includes(state) ?? true)
    const disk = this.#any(disks, (each) => kind !== 'attach' || isFreeFor(vm, each))
    const rule = this.#any(rules)
    const group = this.#any(groups)
    const request = this.#any(requests)
    switch (kind) {
      case 'createVm':
        return vms.length < mostVms ? this.#createVm(`vm-${number}`, type, disk) : undefined
      case 'stop':
      case 'start':
      case 'reset':
      case 'replace':
        return vm && this.#client.begin('PATCH', `/vms/${vm.id}`, { action: kind.toUpperCase() })
      case 'retype':
        return vm && this.#client.begin('PATCH', `/vms/${vm.id}`, { type })
      case 'deleteVm':
        return vm && this.#client.begin('DELETE', `/vms/${vm.id}`)
      case 'createDisk':
        return disks.length < mostDisks ? this.#createDisk(`disk-${number}`, vm) : undefined
      case 'attach':
        return vm && disk && this.#attach(vm, disk)
      case 'detach':
        return this.#detach(disks.filter(({ attached_to }) => attached_to.length > 0))
      case 'grow':
        return disk && this.#client.begin('PATCH', `/disks/${disk.id}`, { size: `${number * 10}GiB` })
      case 'deleteDisk':
        return disk && this.#client.begin('DELETE', `/disks/${disk.id}`)
      case 'createRule':
        return rules.length < mostRules ? this.#createRule(`rule-${number}`, vm) : undefined
      case 'renameRule':
        return rule && this.#client.begin('PATCH', `${rulePath}/${rule.id}`, { name: `rule-${number}` })
      case 'changeRule':
        return (
          rule && this.#client.begin('PATCH', `${rulePath}/${rule.id}`, { destination_ports: [`${number}`] })
        )
      case 'deleteRule':
        return rule && this.#client.begin('DELETE', `${rulePath}/${rule.id}`)
      case 'createGroup':
        return groups.length < mostGroups
          ? this.#client.begin('POST', groupPath, this.#groupBody(number))
          : undefined
      case 'resizeGroup':
        return group && this.#client.begin('PATCH', `${groupPath}/${group.id}`, { desired_count: number % 5 })
      case 'deleteGroup':
        return group && this.#client.begin('DELETE', `${groupPath}/${group.id}`)
      case 'waitForVm':
      case 'waitForGroup':
        return requests.length < mostRequests ? this.#addRequest(kind, number, type) : undefined
      case 'claim':
        return request && this.#client.begin('POST', `${requestPath}/${request.id}/claim`)
      case 'cancel':
        return request && this.#cancel(request)
    }
  }

  #createVm(name: string, type: string, disk: Disk | undefined): Promise<ApiResponse> {
    const takesDisk = disk && this.#random.isOneIn(2)
    return this.#client.begin('POST', '/vms', {
      name,
      ...this.#members(type, takesDisk ? disk.location : this.#random.pick(locations)),
      ...(takesDisk && { disks: [{ disk_id: disk.id }] }),
    })
  }

  #members(type: string, location: string) {
    return { type, location, image: 'ubuntu24.04-nvidia:latest', ssh_public_key: sshKey }
  }

  #groupBody(number: number) {
    const type = `a100.${this.#random.pick([1, 2])}x`
    return {
      ...{ name: `group-${number}`, desired_count: this.#random.between(2, 4) },
      placement_policy: this.#random.pick(['unspecified', 'spread', 'pack']),
      vm: this.#members(type, this.#random.pick(locations)),
    }
  }

  /** Creates a capacity request, mostly for both locations. */
  async #addRequest(kind: 'waitForVm' | 'waitForGroup', number: number, type: string): Promise<undefined> {
    const on_available = this.#random.pick(['create', 'create', 'hold'])
    const isAnywhere = !this.#random.isOneIn(3)
    const wanted =
      kind === 'waitForGroup'
        ? { instance_group: this.#groupBody(number) }
        : { vm: { name: `vm-${number}`, ...this.#members(type, this.#random.pick(locations)) } }
    await this.#client.change('POST', requestPath, {
      ...{ on_available, ...wanted },
      ...(isAnywhere && { locations }),
    })
  }

  async #cancel({ id }: CapacityRequest): Promise<undefined> {
    await this.#client.change('DELETE', `${requestPath}/${id}`)
  }

  #createDisk(name: string, vm: Vm | undefined): Promise<ApiResponse> {
    const location = vm?.location ?? this.#random.pick(locations)
    return this.#client.begin('POST', '/disks', { name, location, size: '10GiB' })
  }

  #attach(vm: Vm, disk: Disk): Promise<ApiResponse> {
    const attach_disks = [{ disk_id: disk.id, attachment_type: 'data', mode: 'read-write' }]
    return this.#client.begin('POST', `/vms/${vm.id}/attach-disks`, { attach_disks })
  }

  async #detach(attached: Disk[]): Promise<ApiResponse | undefined> {
    const disk = this.#any(attached)
    if (!disk) return undefined
    const path = `/vms/${disk.attached_to[0]!.vm_id}/detach-disks`
    return this.#client.begin('POST', path, { detach_disks: [disk.id] })
  }

  #createRule(name: string, vm: Vm | undefined): Promise<ApiResponse> {
    return this.#client.begin('POST', rulePath, {
      ...{ name, vpc_network_id: this.#networkId, action: 'allow', direction: 'ingress' },
      ...{ protocols: ['tcp'], sources: [{ cidr: '203.0.113.0/24' }], destination_ports: ['8888'] },
      destinations: [{ resource_id: vm?.id ?? this.#networkId }],
    })
  }

  /** Returns a suitable resource, or sometimes an unsuitable one, because users make mistakes. */
  #any<Item>(items: Item[], fits: (item: Item) => boolean = () => true): Item | undefined {
    const fitting = this.#random.isOneIn(6) ? items : items.filter(fits)
    return fitting.length > 0 ? this.#random.pick(fitting) : undefined
  }
}

const statesFor: Partial<Record<keyof typeof weights, Vm['state'][]>> = {
  stop: ['STATE_RUNNING', 'STATE_CRASHED'],
  start: ['STATE_SHUTOFF'],
  reset: ['STATE_RUNNING', 'STATE_CRASHED'],
  replace: ['STATE_RUNNING', 'STATE_CRASHED'],
  retype: ['STATE_SHUTOFF'],
  attach: ['STATE_RUNNING', 'STATE_SHUTOFF'],
}

const isFreeFor = (vm: Vm | undefined, disk: Disk): boolean =>
  disk.attached_to.length === 0 && disk.location === vm?.location
