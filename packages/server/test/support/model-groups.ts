import { eventually } from '@slipway/testing/eventually.ts'
import { vmBody } from '@slipway/testing/resources.ts'
import type { TestService } from '@slipway/testing/service.ts'
import { expect } from 'vitest'
import type { ModelProject } from './model.ts'

type Reply = { status: number; body: unknown }

/** The parts of the VM model that the groups of a project need. */
interface VmModel {
  hasRoomFor(count: number): boolean
  hasName(name: string): boolean
  add(id: string, name: string, type: string): void
  forget(id: string): void
  /** Waits for the success of the operation in a reply, and returns the id of its resource. */
  expectSuccess(reply: Reply): Promise<string>
}

/** The groups and capacity requests of one project. Their VMs are in the model of its VMs. */
export class GroupModel {
  readonly #service: TestService
  readonly #project: ModelProject
  readonly #vms: VmModel
  /** The members of each group, by id, in the order of their numbers. */
  readonly #groups = new Map<string, { name: string; members: Map<string, number> }>()

  constructor(service: TestService, project: ModelProject, vms: VmModel) {
    this.#service = service
    this.#project = project
    this.#vms = vms
  }

  async create(name: string, count: number): Promise<void> {
    if (!this.#vms.hasRoomFor(count)) return
    const { name: _, ...vm } = this.#vm('')
    const reply = await this.#call('instanceGroupCreate', {}, { name, desired_count: count, vm })
    if ([...this.#groups.values()].some((group) => group.name === name))
      return expect(reply.body).toMatchObject({ code: 'already_exists' }) as undefined
    if (isOutOfStock(reply)) return
    const id = await this.#vms.expectSuccess(reply)
    this.#groups.set(id, { name, members: new Map() })
    await this.#adopt(id, count)
  }

  async resize(index: number, count: number): Promise<void> {
    const [id, group] = [...this.#groups][index % this.#groups.size] ?? []
    if (!id || !group || !this.#vms.hasRoomFor(count - group.members.size)) return
    const reply = await this.#call('instanceGroupUpdate', { instance_group_id: id }, { desired_count: count })
    if (isOutOfStock(reply)) return
    await this.#vms.expectSuccess(reply)
    const kept = [...group.members].sort(([, a], [, b]) => a - b).slice(0, count)
    await this.#adopt(id, count)
    for (const [vmId] of kept) expect([...group.members.keys()]).toContain(vmId)
  }

  async delete(index: number): Promise<void> {
    const [id, group] = [...this.#groups][index % this.#groups.size] ?? []
    if (!id || !group) return
    await this.#vms.expectSuccess(await this.#call('instanceGroupDelete', { instance_group_id: id }))
    for (const vmId of group.members.keys()) this.#vms.forget(vmId)
    this.#groups.delete(id)
  }

  /**
   * Creates a capacity request for a VM. It is granted immediately if GPUs are free; otherwise the test cancels
   * it.
   */
  async wait(name: string): Promise<void> {
    if (!this.#vms.hasRoomFor(1)) return
    const vm = this.#vm(name)
    const reply = await this.#call('capacityRequestCreate', {}, { vm })
    if (this.#vms.hasName(name))
      return expect(reply.body).toMatchObject({ code: 'already_exists' }) as undefined
    const { id } = reply.body as { id: string }
    expect(id).toBeDefined()
    await this.#service.server.reconciler.capacity()
    await this.#call('capacityRequestDelete', { capacity_request_id: id })
    const ended = await eventually(async () => {
      const { body } = await this.#call('capacityRequestGet', { capacity_request_id: id })
      const request = body as { state: string; resource_id: string; operation_id: string }
      return request.state !== 'waiting' && request.state !== 'held' && request
    })
    if (ended.state === 'cancelled') return
    expect(ended.state).toBe('fulfilled')
    const { operation_id } = ended
    this.#vms.add(
      await this.#vms.expectSuccess({ status: 200, body: { operation: { operation_id } } }),
      name,
      vm.type,
    )
  }

  /** Removes a member that was deleted without its group. */
  forgetMember(vmId: string): void {
    for (const { members } of this.#groups.values()) members.delete(vmId)
  }

  async compare(): Promise<void> {
    const { projectId: project_id, token } = this.#project
    const { items } = await this.#service.ok('instanceGroupList', { token, params: { project_id } })
    const seen = items.map(({ id, name, desired_count, instances }) => ({
      ...{ id, name, desired_count },
      instances: instances.toSorted(),
    }))
    const expected = [...this.#groups].map(([id, { name, members }]) => ({
      ...{ id, name, desired_count: members.size },
      instances: [...members.keys()].sort(),
    }))
    const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)
    expect(seen.sort(byId)).toEqual(expected.sort(byId))
  }

  async clear(): Promise<void> {
    while (this.#groups.size > 0) await this.delete(0)
  }

  /** Reads the members of a group: those that the model does not know are new, and those that are missing were removed. */
  async #adopt(id: string, count: number): Promise<void> {
    const { projectId: project_id, token } = this.#project
    const params = { project_id, instance_group_id: id }
    const { name, members } = await this.#service.ok('instanceGroupGet', { token, params })
    expect(members).toHaveLength(count)
    const known = this.#groups.get(id)!.members
    for (const vmId of [...known.keys()])
      if (!members.some(({ vm_id }) => vm_id === vmId)) {
        known.delete(vmId)
        this.#vms.forget(vmId)
      }
    for (const { vm_id, name: vmName } of members) {
      if (!known.has(vm_id)) this.#vms.add(vm_id, vmName, this.#vm('').type)
      known.set(vm_id, Number(vmName.slice(name.length + 1)))
    }
  }

  #vm(name: string) {
    const { family, location } = this.#project
    return vmBody({ name, type: `${family}.1x`, location })
  }

  #call(id: Parameters<TestService['call']>[0], params: Record<string, string>, body?: unknown) {
    const { projectId: project_id, token } = this.#project
    const given = body === undefined ? {} : { body }
    return this.#service.call(id, {
      token,
      params: { project_id, ...params },
      ...given,
    }) as Promise<Reply>
  }
}

const isOutOfStock = ({ status, body }: Reply) =>
  status === 409 && (body as { code: string }).code === 'out_of_stock'
