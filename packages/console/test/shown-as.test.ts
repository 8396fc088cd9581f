import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Vm } from '@slipway/sdk'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { keyOptions } from '../src/features/keys/fields.tsx'
import { annotationCommand } from '../src/lib/annotation-command.ts'
import { curlCommand, projectCommands, terraformResource } from '../src/lib/shell.ts'
import { changeRuleCommand, createRuleCommand } from '../src/pages/network/firewall/rule-command.ts'
import { bulkCommands } from '../src/pages/vms/bulk-table.ts'

beforeAll(() => {
  vi.stubGlobal('location', { origin: 'https://cloud.example.com' })
})
afterAll(() => {
  vi.unstubAllGlobals()
})

test('commands read scripts from files and keys from the environment, and never contain them', () => {
  const body = { name: 'train-7', startup_script: "#!/bin/sh\nexport TOKEN='s3cret'\n" }
  const { cli, curl, terraform } = projectCommands('p', {
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

test('a Terraform block contains lists and maps, and escapes text that looks like a template', () => {
  const template = ['$', '{x}'].join('')
  const body = { sources: [{ cidr: '10.0.0.0/8' }], labels: { 'team/a': template }, size: undefined }
  expect(terraformResource('firewall_rule', body)).toBe(`resource "slipway_firewall_rule" "example" {
  sources = [{ cidr = "10.0.0.0/8" }]
  labels  = { "team/a" = "$\${x}" }
}`)
})

const sourceFolder = join(import.meta.dirname, '../src')
const sources = readdirSync(sourceFolder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.tsx') || name.endsWith('.ts'))
  .map((name) => ({ name, text: readFileSync(join(sourceFolder, name), 'utf8') }))
const pages = new Map(
  readdirSync(join(import.meta.dirname, '../../../docs/cli')).map((name) => [
    name.replace(/\.md$/, '').replaceAll('-', ' '),
    readFileSync(join(import.meta.dirname, '../../../docs/cli', name), 'utf8'),
  ]),
)

test('every command that the console shows exists, with its options', () => {
  const lines = sources.flatMap(({ name, text }) =>
    [...text.matchAll(/\bslipway ((?:[a-z-]+ )*[a-z-]+)((?:[^\n`']|\$\{[^`]*`[^`]*`)*)/g)]
      .filter(([, words]) => words !== 'server' && !words!.startsWith('server '))
      .map(([line, words]) => ({ name, line, words: words!.replaceAll('-', ' ').split(' ') })),
  )
  expect(lines.length).toBeGreaterThan(40)
  const unknown = lines.flatMap(({ name, line, words }) => {
    const page = words
      .map((_, index) => pages.get(words.slice(0, words.length - index).join(' ')))
      .find((found) => found !== undefined)
    // The last word of some commands is chosen when the dialog opens.
    const isGroup = [...pages.keys()].some((known) => known.startsWith(`${words.join(' ')} `))
    if (!page) return isGroup ? [] : [`${name}: ${line}`]
    const options = [...line.split(' -- ')[0]!.matchAll(/ (--[a-z-]+)/g)].map(([, option]) => option!)
    return options.filter((option) => !page.includes(option)).map((option) => `${name}: ${option} in ${line}`)
  })
  expect(unknown).toEqual([])
})

/** Files without commands: requests of dev mode, and the definition of the dialogs. */
const withoutCommands = ['features/dev-bar.tsx', 'ui/dialog.tsx']

test('every dialog that changes something shows the equivalent commands', () => {
  const missing = sources
    .filter(({ name }) => !withoutCommands.includes(name))
    .filter(({ text }) => {
      const dialogs = text.match(/<(FormDialog|Confirm)\b/g)?.length ?? 0
      const commands = text.match(/\bcommands(=\{|: \{|: [a-zA-Z]+Commands\()/g)?.length ?? 0
      return dialogs > commands
    })
    .map(({ name }) => name)
  expect(missing).toEqual([])
})

test('a change shows only the Terraform arguments that change', () => {
  const { terraform } = projectCommands('p', {
    cli: 'slipway vm label',
    method: 'PATCH',
    path: '/vms/v',
    body: { labels: { team: 'ml' } },
    terraform: 'vm',
    changes: 'train-7',
  })
  expect(terraform).toBe(`# Change these arguments, and keep the others.
resource "slipway_vm" "train-7" {
  labels = { team = "ml" }
}`)
})

test('the command for a signing key names its kind', () => {
  const draft = { name: 'ci', role: 'read', days: '90', from: '' }
  expect(keyOptions({ ...draft, kind: 'signing' })).toBe('ci --role read --kind signing --expires 90d')
  expect(keyOptions({ ...draft, kind: 'bearer' })).toBe('ci --role read --expires 90d')
})

const rule = {
  name: 'jupyter',
  action: 'allow' as const,
  direction: 'ingress' as const,
  protocols: ['tcp' as const],
  sources: [{ cidr: '203.0.113.0/24' }],
  destinations: [{ resource_id: 'v' }],
  destination_ports: ['8888'],
  source_ports: [],
}
const nameOf = () => 'train-7'

test('the command for a rule names its network, unless it is the default', () => {
  const options = '--protocol tcp --port 8888 --from 203.0.113.0/24 --to train-7'
  const start = 'slipway firewall create jupyter --action allow --direction inbound'
  expect(createRuleCommand(rule, 'default-vpc-network', nameOf)).toBe(`${start} ${options}`)
  expect(createRuleCommand(rule, 'training', nameOf)).toBe(`${start} --network training ${options}`)
})

test('the command that changes a rule has an option for each difference', () => {
  const wanted = { ...rule, name: 'notebook', destination_ports: [] }
  expect(changeRuleCommand(rule, wanted, nameOf)).toBe(
    "slipway firewall change jupyter --name notebook --port ''",
  )
})

const vm = {
  id: 'v',
  project_id: 'p',
  name: 'train-7',
  description: '',
  labels: { team: 'ml', stage: 'test' },
  deletion_protection: false,
}

test('the command for an edit changes labels and protection before the name', () => {
  const changes = { name: 'train-8', labels: { team: 'infra' }, deletion_protection: true }
  expect(annotationCommand('vm', vm, changes)).toBe(`slipway vm label train-7 team=infra --remove stage &&
slipway vm protect train-7 &&
slipway vm rename train-7 train-8`)
})

test('an action on several VMs is shown as one command and one request per VM', () => {
  const vms = [vm, { ...vm, id: 'w', name: 'train-8' }] as unknown as Vm[]
  const input = { setLabels: 'team=infra', removedLabels: [], isProtected: false }
  expect(bulkCommands('labels', vms, input)).toMatchObject({
    cli: 'slipway vm label train-7 team=infra\nslipway vm label train-8 team=infra',
    terraform: expect.stringContaining('resource "slipway_vm" "train-8"'),
  })
  const { cli, curl, terraform } = bulkCommands('delete', vms, input)
  expect(cli).toBe('slipway vm delete train-7 --yes\nslipway vm delete train-8 --yes')
  expect(curl.match(/curl -X DELETE /g)).toHaveLength(2)
  expect(terraform).toBeUndefined()
})
