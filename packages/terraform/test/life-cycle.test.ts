import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildProvider, missingTerraform, Workspace } from './support/terraform.ts'

const configuration = (name: string, type: string) => `
resource "slipway_vm" "train" {
  name           = "${name}"
  type           = "${type}"
  location       = "any"
  image          = "ubuntu24.04-nvidia"
  ssh_public_key = file("id_ed25519.pub")
  allow_stopping = true
}`

describe.skipIf(missingTerraform)(`a VM (${missingTerraform || 'real Terraform'})`, () => {
  let service: TestService
  let workspace: Workspace

  beforeAll(async () => {
    await buildProvider()
    service = await startService()
    workspace = new Workspace(service)
  })
  afterAll(async () => {
    workspace?.close()
    await service?.close()
  })

  test('is created, found unchanged, renamed and resized in place, and destroyed', async () => {
    workspace.write(configuration('train-7', 'a100.1x'))
    await workspace.apply()
    expect(await workspace.changes()).toEqual({})
    const created = (await workspace.state('slipway_vm.train'))!
    expect(created).toMatchObject({ state: 'STATE_RUNNING', usd_per_hour: 1.45 })

    workspace.write(configuration('train-8', 'a100.2x'))
    expect(await workspace.changes()).toEqual({ 'slipway_vm.train': 'update' })
    await workspace.ok('apply', 'plan')
    const vm = await service.ok('vmGet', { params: { vm_id: created.id as string } })
    expect(vm).toMatchObject({ name: 'train-8', type: 'a100.2x', state: 'STATE_RUNNING' })

    await workspace.destroy()
    expect((await service.ok('vmList')).items).toEqual([])
  })
})
