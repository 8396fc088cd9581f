import { createClient } from '@slipway/sdk'
import { eventually } from '@slipway/testing/eventually.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import type { Scene } from './scene.ts'

const type = 'a100.1x'
const image = 'ubuntu24.04-nvidia'

/** Creates one or two of everything that a project can have besides VMs, and returns IDs for the paths of pages. */
export async function fillProject(scene: Scene, project_id: string): Promise<Record<string, string>> {
  const { owner } = scene
  const vmNamed = async (names: string) => (await owner.vmList({ project_id, names })).items[0]!
  const vm = await vmNamed('train-7')
  const { location } = vm
  const target = { project_id }
  const labels = { team: 'vision' }
  const webhook = await owner.webhookCreate(target, { url: 'https://hooks.example.com/slipway' })
  await owner.webhookTest({ ...target, webhook_id: webhook.id })
  const disks = await Promise.all(
    [
      ['datasets', '500GiB'],
      ['checkpoints-of-the-long-run', '2048GiB'],
      ['results', '100GiB'],
    ].map(([name, size]) => owner.diskCreate(target, { name: name!, size: size!, location, labels })),
  )
  for (const { operation } of disks) await owner.wait(target, operation)
  const [disk_id, , attached_id] = disks.map(({ operation }) => operation.metadata.id)
  for (const name of ['datasets-monday', 'datasets-tuesday'])
    await owner.wait(
      target,
      (await owner.snapshotCreate(target, { name, disk_id: disk_id!, labels })).operation,
    )
  const copied = { name: 'trainer:v1', vm_id: vm.id, allow_crash_consistent: true, labels }
  await owner.wait(target, (await owner.customImageCreate(target, copied)).operation)
  const attached = { disk_id: attached_id!, attachment_type: 'data', mode: 'read-write' } as const
  const onVm = { ...target, vm_id: vm.id }
  await owner.wait(target, (await owner.vmAttachDisks(onVm, { attach_disks: [attached] })).operation)
  await owner.addressCreate(target, { name: 'gateway', location })
  const address = await owner.addressCreate(target, { name: 'front', location })
  const { operation } = await owner.addressAssign({ ...target, address_id: address.id }, { vm_id: vm.id })
  await owner.wait(target, operation)
  await owner.networkCreate(target, { name: 'lab', cidr: '10.77.0.0/16' })
  await owner.sshKeyCreate(target, { name: 'laptop', public_key: sshKey })
  await owner.accessKeyCreate(target, { name: 'ci', role: 'write' })
  const settings = { type, location, image, ssh_public_key: sshKey }
  const template = await owner.instanceTemplateCreate(target, { name: 'trainer', ...settings })
  const group = await owner.instanceGroupCreate(target, {
    name: 'trainer',
    desired_count: 2,
    template_id: template.id,
  })
  await owner.wait(target, group.operation)
  const waiting = { ...settings, name: 'nightly' }
  await owner.capacityRequestCreate(target, { vm: waiting, on_available: 'hold', labels })
  return {
    VM: vm.id,
    STOPPED: (await vmNamed('notebook')).id,
    WEBHOOK: webhook.id,
    GROUP: group.operation.metadata.id,
    NOWHERE: '00000000-0000-7000-8000-000000000000',
  }
}

/** Gives the organization a member, a key, requests and a reservation, and returns IDs for the operators' pages. */
export async function fillFleet(scene: Scene, project_id: string): Promise<Record<string, string>> {
  const { owner, operator, organization_id, url } = scene
  for (const [name, reason] of [
    ['a100_gpus', 'Training run of the vision team, from 1 December on'],
    ['disk_gib', 'Datasets of the new customers'],
  ] as const)
    await owner.quotaRequestCreate({ organization_id }, { name, max: 1_000_000, reason })
  await owner.alertRecipientsSet({ organization_id }, { emails: ['oncall@example.com'] })
  await owner.organizationKeyCreate({ organization_id }, { name: 'robots', role: 'viewer' })
  const email = 'mary@example.com'
  const { invite_url } = await owner.memberCreate({ organization_id }, { email, role: 'member' })
  await createClient({ baseUrl: url }).authAccept({ code: codeOf(invite_url), password: 'analytical-engine' })
  await scene.sql(`UPDATE users SET totp_sealed = '', totp_confirmed_at = slipway_now() WHERE email = $1`, [
    email,
  ])
  // The last operator cannot lose the access.
  const second = await operator.adminUserCreate({ email: 'edith@example.com', is_operator: true })
  await createClient({ baseUrl: url }).authAccept({
    code: codeOf(second.invite_url),
    password: 'analytical-engine',
  })
  const day = 86_400_000
  await operator.adminReservationCreate({
    organization_id,
    billing_project_id: project_id,
    type,
    location: scene.routed,
    count: 2,
    contract_start_date: new Date(Date.now() + day).toISOString(),
    contract_end_date: new Date(Date.now() + 31 * day).toISOString(),
    usd_per_gpu_hour: 1.2,
  })
  const users = await operator.collect('adminUserList', {})
  const hosts = await operator.collect('adminHostList', {})
  return {
    HOST: hosts.find(({ vms }) => vms.length > 0)!.id,
    EMPTY: hosts.find(({ vms }) => vms.length === 0)!.id,
    VM: (await owner.vmList({ project_id, names: 'train-7' })).items[0]!.id,
    ORGANIZATION: organization_id,
    USER: users.find((user) => user.email === email)!.id,
    OPERATOR: users.find(({ is_operator }) => is_operator)!.id,
  }
}

const codeOf = (inviteUrl: string) => new URLSearchParams(new URL(inviteUrl).hash.slice(1)).get('code')!

/** Deletes a VM whose deletion is stuck, because its host keeps failing. */
export async function makeStuck(scene: Scene, name: string): Promise<void> {
  const { owner, sql } = scene
  const project_id = scene.projects['with-1']!
  await sql(
    `INSERT INTO simulated_faults (method, kind, delay_ms, remaining) VALUES ('removeVm', 'fail', 0, 1000)`,
  )
  const { id: vm_id } = await scene.createVm(project_id, name)
  const { operation } = await owner.vmDelete({ project_id, vm_id })
  // Change the row between two attempts: an attempt in progress overwrites the time.
  await eventually(async () => {
    const late = await sql(
      `WITH due AS (
         UPDATE operation_queue q SET run_at = slipway_now() FROM operations o
         WHERE q.operation_id = $1 AND o.id = $1 AND o.attempts > 0 AND q.lease_token IS NULL
         RETURNING q.operation_id)
       UPDATE operations SET started_at = started_at - interval '1 day'
       WHERE id IN (SELECT operation_id FROM due) RETURNING id`,
      [operation.operation_id],
    )
    return late.length > 0
  })
}
