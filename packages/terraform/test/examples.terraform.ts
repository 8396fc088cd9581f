import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownerToken } from '@slipway/testing/people.ts'
import { root } from '@slipway/testing/root.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dataSources, resources } from '../src/resources/index.ts'
import { buildProvider, missingTerraform, Workspace } from './support/terraform.ts'

describe.skipIf(missingTerraform)(`examples (${missingTerraform || 'real Terraform'})`, () => {
  let service: TestService
  let workspace: Workspace

  beforeAll(async () => {
    await buildProvider()
    service = await startService()
    const token = await ownerToken(service)
    const key = await service.ok('organizationKeyCreate', {
      token,
      body: { name: 'terraform', role: 'owner' },
    })
    workspace = new Workspace(service, key.secret)
  })
  afterAll(async () => {
    workspace.close()
    await service.close()
  })

  const variable = 'variable "organization_id" {}\n'

  test.each(resources.map(({ row }) => [row.name, row.example]))(
    'the example on the page of slipway_%s can be applied',
    async (_, example) => {
      workspace.write(variable + example)
      await workspace.apply()
      expect(await workspace.changes()).toEqual({})
      await workspace.destroy()
    },
  )

  test('the examples on the pages of the catalogue can be applied', async () => {
    const lists = dataSources.filter(({ attributes }) => attributes.some(({ name }) => name === 'items'))
    workspace.write(lists.map(({ example }) => example).join('\n'))
    expect(await workspace.apply()).toContain('cheapest = "a100.1x"')
  })

  test('a data source finds a resource by its name, its labels and its id, and fails if it finds none', async () => {
    workspace.write(`
      resource "slipway_network" "it" {
        name   = "lab"
        cidr   = "10.60.0.0/16"
        labels = { team = "ml" }
      }
      data "slipway_network" "by_name" { name = slipway_network.it.name }
      data "slipway_network" "by_id" { id = slipway_network.it.id }
      data "slipway_network" "by_labels" {
        label_selector = "team=ml"
        depends_on     = [slipway_network.it]
      }
      output "ids" {
        value = length(toset([for found in [data.slipway_network.by_name, data.slipway_network.by_id, data.slipway_network.by_labels] : found.id]))
      }`)
    expect(await workspace.apply()).toContain('ids = 1')
    await workspace.destroy()
    workspace.write('data "slipway_network" "none" { name = "none" }')
    const { code, text } = await workspace.run('plan')
    expect(code).toBe(1)
    expect(text).toContain('No network matches')
  })

  test('the configuration in the guide can be applied', async () => {
    const page = readFileSync(join(root, 'docs/guides/terraform.md'), 'utf8')
    const [, main = ''] = /```terraform\n(terraform \{[\s\S]*?)```/.exec(page) ?? []
    workspace.write(main.replace(/^terraform \{[\s\S]*?^\}\n/m, ''))
    expect(await workspace.apply()).toMatch(/ssh = "ubuntu@[\d.]+" usd_per_hour = 1\.45/)
    expect(await workspace.changes()).toEqual({})
    await workspace.destroy()
  })
})
