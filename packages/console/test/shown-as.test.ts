import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { curlCommand, projectCommands, terraformResource } from '../src/lib/shell.ts'

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

/** Dialogs that send several requests, or whose request exists only in dev mode. */
const withoutCommands = [
  'features/annotations.tsx',
  'features/capacity/wait-to-start.tsx',
  'features/dev-bar.tsx',
  'pages/vms/bulk-dialog.tsx',
  'ui/dialog.tsx',
]

test('every dialog that changes something shows the equivalent commands', () => {
  const missing = sources
    .filter(({ name }) => !withoutCommands.includes(name))
    .filter(({ text }) => {
      const dialogs = text.match(/<(FormDialog|Confirm)\b/g)?.length ?? 0
      const commands = text.match(/\bcommands(=\{|: \{)/g)?.length ?? 0
      return dialogs > commands && !/\.\.\.submit\}/.test(text)
    })
    .map(({ name }) => name)
  expect(missing).toEqual([])
})
