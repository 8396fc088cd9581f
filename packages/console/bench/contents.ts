import type { Vm } from '@slipway/sdk'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import type { Scene } from './scene.ts'

const type = 'a100.1x'
const image = 'ubuntu24.04-nvidia'

/** Creates one or two of everything that a project can have besides VMs, and returns ids for the paths of pages. */
export async function fillProject(scene: Scene, project_id: string, vm: Vm): Promise<Record<string, string>> {
  const { owner, organization_id } = scene
  const { location } = vm
  const target = { project_id }
  const labels = { team: 'vision' }
  const webhook = await owner.webhookCreate(target, { url: 'https://hooks.example.com/slipway' })
  await owner.webhookTest({ ...target, webhook_id: webhook.id })
  const disks = await Promise.all(
    [
      ['datasets', '500GiB'],
      ['checkpoints-of-the-long-run', '2048GiB'],
    ].map(([name, size]) => owner.diskCreate(target, { name: name!, size: size!, location, labels })),
  )
  for (const { operation } of disks) await owner.wait(target, operation)
  const disk_id = disks[0]!.operation.metadata.id
  for (const name of ['datasets-monday', 'datasets-tuesday'])
    await owner.wait(target, (await owner.snapshotCreate(target, { name, disk_id, labels })).operation)
  const copied = { name: 'trainer:v1', vm_id: vm.id, allow_crash_consistent: true, labels }
  await owner.wait(target, (await owner.customImageCreate(target, copied)).operation)
  await owner.addressCreate(target, { name: 'gateway', location })
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
  for (const [name, reason] of [
    ['a100_gpus', 'Training run of the vision team, from 1 December on'],
    ['disk_gib', 'Datasets of the new customers'],
  ] as const)
    await owner.quotaRequestCreate({ organization_id }, { name, max: 1_000_000, reason })
  await owner.alertRecipientsSet({ organization_id }, { emails: ['oncall@example.com'] })
  return { VM: vm.id, WEBHOOK: webhook.id, GROUP: group.operation.metadata.id }
}
