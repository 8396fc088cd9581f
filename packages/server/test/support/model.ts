import { eventually } from '@slipway/testing/eventually.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import type { TestService } from '@slipway/testing/service.ts'
import { expect } from 'vitest'
import { GroupModel } from './model-groups.ts'
import type { Step } from './model-steps.ts'

const faultyMethods = [
  ...['ensureVm', 'powerVm', 'removeVm', 'applyFirewall', 'attachDisk'],
  ...['detachDisk', 'ensureDisk', 'growDisk', 'removeDisk', 'removeVm'],
]

type State = 'STATE_RUNNING' | 'STATE_SHUTOFF' | 'STATE_CRASHED'
interface ModelVm {
  name: string
  type: string
  state: State
  refusesPower: boolean
}
interface ModelDisk {
  name: string
  gib: number
  vm: string | null
}

export interface ModelProject {
  projectId: string
  token: string
  location: string
  family: string
  networkId: string
}

const mostVms = 5
const mostDisks = 6

/** One project on its own hosts, and its expected state after all steps. */
export class ProjectModel {
  readonly #service: TestService
  readonly #project: ModelProject
  readonly #vms = new Map<string, ModelVm>()
  readonly #disks = new Map<string, ModelDisk>()
  readonly #rules = new Map<string, { name: string; port: string }>()

  readonly #groups: GroupModel

  constructor(service: TestService, project: ModelProject) {
    this.#service = service
    this.#project = project
    this.#groups = new GroupModel(service, project, {
      hasRoomFor: (count) => this.#vms.size + count <= mostVms,
      hasName: (name) => this.#hasName(name),
      add: (id, name, type) => this.#vms.set(id, { name, type, state: 'STATE_RUNNING', refusesPower: false }),
      forget: (id) => this.#forgetVm(id),
      expectSuccess: (reply) => this.#expectEnd(reply),
    })
  }

  async run(step: Step): Promise<void> {
    switch (step.do) {
      case 'nothing':
        return
      case 'createVm':
        return this.#createVm(`vm-${step.name}`, step.gpus, step.disk)
      case 'start':
        return this.#act(step.vm, 'START', ['STATE_SHUTOFF'], 'STATE_RUNNING', 'STATE_SHUTOFF')
      case 'stop':
        return this.#act(step.vm, 'STOP', ['STATE_RUNNING', 'STATE_CRASHED'], 'STATE_SHUTOFF', null)
      case 'reset':
        return this.#act(
          step.vm,
          'RESET',
          ['STATE_RUNNING', 'STATE_CRASHED'],
          'STATE_RUNNING',
          'STATE_CRASHED',
        )
      case 'replace':
        return this.#act(step.vm, 'REPLACE', ['STATE_RUNNING', 'STATE_CRASHED'], 'STATE_RUNNING', null)
      case 'deleteVm':
        return this.#deleteVm(step.vm)
      case 'crash':
        return this.#crash(step.vm)
      case 'refusePower':
        return this.#refusePower(step.vm)
      case 'retype':
        return this.#retype(step.vm, step.gpus)
      case 'loseHost':
        return this.#loseHost(step.vm, step.isDeleted)
      case 'createDisk':
        return this.#createDisk(`disk-${step.name}`)
      case 'attach':
        return this.#attach(step.vm, step.disk)
      case 'detach':
        return this.#detach(step.vm, step.disk)
      case 'grow':
        return this.#grow(step.disk, step.gib)
      case 'deleteDisk':
        return this.#deleteDisk(step.disk)
      case 'createRule':
        return this.#createRule(`rule-${step.name}`)
      case 'changeRule':
        return this.#changeRule(step.rule, String(9000 + step.port))
      case 'deleteRule':
        return this.#deleteRule(step.rule)
      case 'createGroup':
        return this.#groups.create(`group-${step.name}`, step.count)
      case 'resizeGroup':
        return this.#groups.resize(step.group, step.count)
      case 'deleteGroup':
        return this.#groups.delete(step.group)
      case 'waitForVm':
        return this.#groups.wait(`vm-${step.name}`)
      case 'fault':
        return this.#simulator.addFault({ method: faultyMethods[step.method]!, kind: step.kind })
      case 'moveClock':
        return this.#service.clock.advance('3 seconds')
    }
  }

  /** Checks that the tenant reads what the model expects. */
  async compare(): Promise<void> {
    const vms = await this.#ok('vmList', {})
    expect(vms.items.map(({ id, name, type, state }) => ({ id, name, type, state })).sort(byId)).toEqual(
      [...this.#vms].map(([id, { name, type, state }]) => ({ id, name, type, state })).sort(byId),
    )
    // A single read equals the list, except for the cost, which grows.
    for (const { cost_usd: _, ...listed } of vms.items) {
      const params = { project_id: this.#project.projectId, vm_id: listed.id }
      expect(await this.#service.ok('vmGet', { token: this.#project.token, params })).toMatchObject(listed)
    }
    await this.#groups.compare()
    const disks = await this.#ok('diskList', {})
    expect(
      disks.items
        .map(({ id, name, size, state, attached_to }) => ({
          ...{ id, name, size, state },
          vm: attached_to[0]?.vm_id ?? null,
        }))
        .sort(byId),
    ).toEqual(
      [...this.#disks]
        .map(([id, { name, gib, vm }]) => ({ id, name, size: `${gib}GiB`, state: 'available', vm }))
        .sort(byId),
    )
    const rules = await this.#ok('firewallRuleList', {})
    expect(
      rules.items
        .filter(({ name }) => name.startsWith('rule-'))
        .map(({ id, name, state, destination_ports }) => ({ id, name, state, port: destination_ports[0] }))
        .sort(byId),
    ).toEqual(
      [...this.#rules].map(([id, { name, port }]) => ({ id, name, state: 'active', port })).sort(byId),
    )
  }

  /** Deletes everything, so that the next run begins with an empty project. */
  async clear(): Promise<void> {
    await this.#groups.clear()
    while (this.#vms.size > 0) await this.#deleteVm(0)
    while (this.#disks.size > 0) await this.#deleteDisk(0)
    while (this.#rules.size > 0) await this.#deleteRule(0)
  }

  get #simulator() {
    return this.#service.simulator(this.#project.location)
  }

  async #createVm(name: string, gpus: 1 | 2, diskIndex: number | null): Promise<void> {
    if (this.#vms.size >= mostVms) return
    const type = `${this.#project.family}.${gpus}x`
    const disk = diskIndex === null ? undefined : pick(this.#disks, diskIndex)
    const { location } = this.#project
    const body = vmBody({ name, type, location, ...(disk && { disks: [{ disk_id: disk[0] }] }) })
    const response = await this.#call('vmCreate', {}, body)
    if (this.#hasName(name)) return this.#expectRefusal(response, 'already_exists')
    if (disk?.[1].vm) return this.#expectRefusal(response, 'conflict')
    // GPUs of deleted VMs may still be in quarantine. Only then is this response valid, too.
    if (response.status === 409 && response.body.code === 'out_of_stock') return
    const id = await this.#expectEnd(response)
    this.#vms.set(id, { name, type, state: 'STATE_RUNNING', refusesPower: false })
    if (disk) disk[1].vm = id
  }

  async #act(
    index: number,
    action: string,
    from: State[],
    to: State,
    whenRefused: State | null,
  ): Promise<void> {
    const [id, vm] = pick(this.#vms, index) ?? []
    if (!id || !vm) return
    const response = await this.#call('vmUpdate', { vm_id: id }, { action })
    if (!from.includes(vm.state)) return this.#expectRefusal(response, 'conflict')
    if (response.status === 409 && response.body.code === 'out_of_stock') return
    const hadRefusal = vm.refusesPower
    vm.refusesPower = hadRefusal && (await this.#isRefusalPending(response, id))
    const isRefused = hadRefusal && !vm.refusesPower
    await this.#expectEnd(response, isRefused ? 'FAILED' : 'SUCCEEDED')
    vm.state = isRefused ? (whenRefused ?? vm.state) : to
  }

  /** Returns whether the planned refusal is still to come: an engine that did the work is not called again. */
  async #isRefusalPending(response: { body: unknown }, vmId: string): Promise<boolean> {
    await this.#waitForEnd(response)
    const rows = await this.#service.sql(
      `SELECT FROM simulated_faults WHERE resource_id = $1 AND kind = 'reject' AND remaining > 0`,
      [vmId],
    )
    return rows.length > 0
  }

  async #deleteVm(index: number): Promise<void> {
    const [id] = pick(this.#vms, index) ?? []
    if (!id) return
    await this.#expectEnd(await this.#call('vmDelete', { vm_id: id }))
    this.#forgetVm(id)
  }

  async #crash(index: number): Promise<void> {
    const [id, vm] = pick(this.#vms, index) ?? []
    if (!id || vm?.state !== 'STATE_RUNNING') return
    await this.#simulator.crashVm(id)
    await this.#until(id, 'STATE_CRASHED')
    vm.state = 'STATE_CRASHED'
  }

  async #refusePower(index: number): Promise<void> {
    const [id, vm] = pick(this.#vms, index) ?? []
    if (!id || !vm || vm.refusesPower) return
    const method = vm.state === 'STATE_SHUTOFF' ? 'ensureVm' : 'powerVm'
    await this.#simulator.addFault({ method, kind: 'reject', resourceId: id })
    vm.refusesPower = true
  }

  async #retype(index: number, gpus: 1 | 2): Promise<void> {
    const [id, vm] = pick(this.#vms, index) ?? []
    if (!id || !vm) return
    const type = `${this.#project.family}.${gpus}x`
    const response = await this.#call('vmUpdate', { vm_id: id }, { type })
    if (vm.state !== 'STATE_SHUTOFF') return this.#expectRefusal(response, 'conflict')
    await this.#expectEnd(response)
    vm.type = type
  }

  /** Loses the VM's host with all its VMs until the VM counts as unreachable. Then the host returns. */
  async #loseHost(index: number, isDeleted: boolean): Promise<void> {
    const [id, vm] = pick(this.#vms, index) ?? []
    if (!id || vm?.state !== 'STATE_RUNNING') return
    const [host] = await this.#service.sql<{ id: string; name: string }>(
      'SELECT h.id, h.name FROM vms v JOIN hosts h ON h.id = v.host_id WHERE v.id = $1',
      [id],
    )
    await this.#simulator.setHostLost(host!.name, true)
    await eventually(async () => {
      await this.#service.sql(
        `UPDATE host_reports SET reported_at = reported_at - interval '1 minute' WHERE host_id = $1`,
        [host!.id],
      )
      await this.#service.server.reconciler.reports()
      return (await this.#stateOf(id)) === 'STATE_UNREACHABLE'
    })
    if (isDeleted) await this.#expectEnd(await this.#call('vmDelete', { vm_id: id }))
    await this.#simulator.setHostLost(host!.name, false)
    await eventually(async () => {
      await this.#service.server.reconciler.reports()
      const rows = await this.#service.sql(
        `SELECT FROM vms WHERE host_id = $1 AND (state = 'STATE_UNREACHABLE' OR deleted_at IS NOT NULL)`,
        [host!.id],
      )
      return rows.length === 0
    })
    if (isDeleted) this.#forgetVm(id)
  }

  async #createDisk(name: string): Promise<void> {
    if (this.#disks.size >= mostDisks) return
    const response = await this.#call(
      'diskCreate',
      {},
      { name, size: '10GiB', location: this.#project.location },
    )
    if ([...this.#disks.values()].some((disk) => disk.name === name))
      return this.#expectRefusal(response, 'already_exists')
    this.#disks.set(await this.#expectEnd(response), { name, gib: 10, vm: null })
  }

  async #attach(vmIndex: number, diskIndex: number): Promise<void> {
    const [vmId, vm] = pick(this.#vms, vmIndex) ?? []
    const [diskId, disk] = pick(this.#disks, diskIndex) ?? []
    if (!vmId || !vm || !diskId || !disk) return
    const attach_disks = [{ disk_id: diskId, attachment_type: 'data', mode: 'read-write' }]
    const response = await this.#call('vmAttachDisks', { vm_id: vmId }, { attach_disks })
    if (vm.state === 'STATE_CRASHED' || disk.vm) return this.#expectRefusal(response, 'conflict')
    await this.#expectEnd(response)
    disk.vm = vmId
  }

  async #detach(vmIndex: number, diskIndex: number): Promise<void> {
    const [vmId, vm] = pick(this.#vms, vmIndex) ?? []
    const [diskId, disk] = pick(this.#disks, diskIndex) ?? []
    if (!vmId || !vm || !diskId || !disk) return
    const response = await this.#call('vmDetachDisks', { vm_id: vmId }, { detach_disks: [diskId] })
    if (vm.state === 'STATE_CRASHED' || disk.vm !== vmId) return this.#expectRefusal(response, 'conflict')
    await this.#expectEnd(response)
    disk.vm = null
  }

  async #grow(index: number, gib: number): Promise<void> {
    const [id, disk] = pick(this.#disks, index) ?? []
    if (!id || !disk) return
    const response = await this.#call('diskUpdate', { disk_id: id }, { size: `${gib + 1}GiB` })
    if (gib + 1 <= disk.gib) return this.#expectRefusal(response, 'invalid_argument')
    await this.#expectEnd(response)
    disk.gib = gib + 1
  }

  async #deleteDisk(index: number): Promise<void> {
    const [id, disk] = pick(this.#disks, index) ?? []
    if (!id || !disk) return
    const response = await this.#call('diskDelete', { disk_id: id })
    if (disk.vm) return this.#expectRefusal(response, 'conflict')
    await this.#expectEnd(response)
    this.#disks.delete(id)
  }

  async #createRule(name: string): Promise<void> {
    const response = await this.#call(
      'firewallRuleCreate',
      {},
      {
        ...{ name, vpc_network_id: this.#project.networkId, action: 'allow', direction: 'ingress' },
        ...{ protocols: ['tcp'], sources: [{ cidr: '203.0.113.0/24' }], destination_ports: ['8888'] },
        destinations: [{ resource_id: [...this.#vms.keys()][0] ?? this.#project.networkId }],
      },
    )
    if ([...this.#rules.values()].some((rule) => rule.name === name))
      return this.#expectRefusal(response, 'already_exists')
    this.#rules.set(await this.#expectEnd(response), { name, port: '8888' })
  }

  async #changeRule(index: number, port: string): Promise<void> {
    const [id, rule] = pick(this.#rules, index) ?? []
    if (!id || !rule) return
    await this.#expectEnd(
      await this.#call('firewallRuleUpdate', { rule_id: id }, { destination_ports: [port] }),
    )
    rule.port = port
  }

  async #deleteRule(index: number): Promise<void> {
    const [id] = pick(this.#rules, index) ?? []
    if (!id) return
    await this.#expectEnd(await this.#call('firewallRuleDelete', { rule_id: id }))
    this.#rules.delete(id)
  }

  #hasName(name: string): boolean {
    return [...this.#vms.values()].some((vm) => vm.name === name)
  }

  #forgetVm(id: string): void {
    this.#vms.delete(id)
    this.#groups.forgetMember(id)
    for (const disk of this.#disks.values()) if (disk.vm === id) disk.vm = null
  }

  #expectRefusal(response: { body: unknown }, code: string): void {
    expect(response.body).toMatchObject({ code })
  }

  /** Waits for the operation to end in this state, and returns the id of its resource. */
  async #expectEnd(response: { body: unknown }, state = 'SUCCEEDED'): Promise<string> {
    const ended = await this.#waitForEnd(response)
    expect(ended, JSON.stringify(ended)).toMatchObject({ state })
    return ended.metadata.id
  }

  #waitForEnd(response: { body: unknown }) {
    expect(response.body).toHaveProperty('operation')
    const { operation_id } = (response.body as { operation: { operation_id: string } }).operation
    const { projectId: project_id, token } = this.#project
    return eventually(async () => {
      const params = { project_id, operation_id }
      const now = await this.#service.ok('operationGet', { token, params, query: { wait: 20 } })
      return now.state !== 'IN_PROGRESS' && now
    })
  }

  async #stateOf(vm_id: string): Promise<string> {
    const { projectId: project_id, token } = this.#project
    return (await this.#service.ok('vmGet', { token, params: { project_id, vm_id } })).state
  }

  #until(vmId: string, state: string) {
    return eventually(async () => {
      await this.#service.server.reconciler.reports()
      return (await this.#stateOf(vmId)) === state
    })
  }

  #call(id: Parameters<TestService['call']>[0], params: Record<string, string>, body?: unknown) {
    const { projectId: project_id, token } = this.#project
    return this.#service.call(id, {
      token,
      params: { project_id, ...params },
      ...(body !== undefined && { body }),
    }) as Promise<{ status: number; body: { code?: string } }>
  }

  #ok<Id extends 'vmList' | 'diskList' | 'firewallRuleList'>(id: Id, params: Record<string, string>) {
    const { projectId: project_id, token } = this.#project
    return this.#service.ok(id, { token, params: { project_id, ...params } })
  }
}

const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)

function pick<V>(map: Map<string, V>, index: number): [string, V] | undefined {
  return map.size === 0 ? undefined : [...map][index % map.size]
}
