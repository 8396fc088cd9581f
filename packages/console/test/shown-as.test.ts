import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { curlCommand, shownAs, terraformResource } from '../src/lib/shell.ts'

beforeAll(() => {
  vi.stubGlobal('location', { origin: 'https://cloud.example.com' })
})
afterAll(() => {
  vi.unstubAllGlobals()
})

test('commands read scripts from files and keys from the environment, and never contain them', () => {
  const body = { name: 'train-7', startup_script: "#!/bin/sh\nexport TOKEN='s3cret'\n" }
  const { cli, curl, terraform } = shownAs('p', {
    cli: 'slipway vm create',
    path: '/vms',
    body,
    terraform: 'vm',
  })
  expect(`${cli} ${curl} ${terraform}`).not.toContain('s3cret')
  expect(curl).toBe(`curl -X POST https://cloud.example.com/v0.1/projects/p/vms \\
  -H "Authorization: Bearer $SLIPWAY_ACCESS_KEY" \\
  -H "Content-Type: application/json" \\
  -d "$(jq -n --rawfile startup_script start.sh '{"name":"train-7","startup_script":$startup_script}')"`)
  expect(terraform).toBe(`resource "slipway_vm" "train-7" {
  name           = "train-7"
  startup_script = file("start.sh")
}`)
})

test('quotes in a value do not end the argument of a command', () => {
  expect(curlCommand('PATCH', '/v0.1/x', { description: `it's` })).toContain(
    `-d '{"description":"it'\\''s"}'`,
  )
})

test('Terraform shows lists, maps and text that looks like a template as they are', () => {
  const template = ['$', '{x}'].join('')
  const body = { sources: [{ cidr: '10.0.0.0/8' }], labels: { 'team/a': template }, size: undefined }
  expect(terraformResource('firewall_rule', body)).toBe(`resource "slipway_firewall_rule" "example" {
  sources = [{ cidr = "10.0.0.0/8" }]
  labels  = { "team/a" = "$\${x}" }
}`)
})
