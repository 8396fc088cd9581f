import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { EventType } from '@slipway/contract/event-types'
import { eventFacts } from '@slipway/contract/openapi/webhooks'
import type { Event } from '@slipway/sdk'
import { startProgram } from '@slipway/testing/program.ts'
import { root } from '@slipway/testing/root.ts'
import { beforeAll, expect, test } from 'vitest'
import { commands } from '../src/commands/index.ts'
import { aliases, type CommandNode, isGroup, type OptionSpec } from '../src/core/command.ts'
import { globalOptions } from '../src/core/global-options.ts'
import { binary } from './support/cli.ts'
import { cliWithServer } from './support/with-server.ts'

const cli = cliWithServer()

interface Block {
  page: string
  line: number
  /** False for a transcript with prompts and output. */
  isScript: boolean
  text: string
  /** The text after the language: nothing, or `no-run:` and a reason. */
  mark: string
}

const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}/README.md`),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]
const blocks: Block[] = pages.flatMap(blocksOf)
const isRun = ({ isScript, mark }: Block) => isScript && mark === ''

function blocksOf(page: string): Block[] {
  let text = ''
  try {
    text = readFileSync(join(root, page), 'utf8')
  } catch {
    // Some packages have no README.md.
  }
  return Array.from(text.matchAll(/^```(sh|bash|shell|console)\b(.*)\n([\s\S]*?)^```$/gm), (match) => ({
    page,
    isScript: match[1] !== 'console',
    line: text.slice(0, match.index).split('\n').length,
    mark: match[2]!.trim(),
    text: match[3]!,
  }))
}

test('a command block is run, or says why not', () => {
  const unclear = blocks.filter((block) => !isRun(block) && !/^no-run: \S+ \S+/.test(block.mark))
  expect(unclear).toEqual([])
  expect(blocks.filter(isRun).length).toBeGreaterThan(10)
})

test('a command block that is not run is still a valid script', () => {
  const script = blocks
    .filter((block) => block.isScript && !isRun(block))
    .map(({ text }, index) => `block_${index}() {\n${text}\n:\n}`)
  expect(spawnSync('bash', ['-n'], { input: script.join('\n'), encoding: 'utf8' }).stderr).toBe('')
})

/** The command lines of all blocks. Continued lines are joined, and pipes and comments are cut off. */
const lines = blocks.flatMap(({ page, text }) =>
  Array.from(
    text.replaceAll(/\\\n\s*/g, ' ').matchAll(/(?:^|[\s(|"])slipway ((?:[^|#;<>&)\n]|(?<=\S)#)*)/gm),
    ([, words = '']) => ({ page, words: words.split(' -- ')[0]!.trim().split(/\s+/) }),
  ),
)

test('every command line of every page is an existing command with existing options', async () => {
  const wrong: string[] = []
  for (const { page, words } of lines) {
    const objection = await objectionTo(words)
    if (objection) wrong.push(`${page}: slipway ${words.join(' ')}: ${objection}`)
  }
  expect(wrong).toEqual([])
  expect(lines.length).toBeGreaterThan(200)
})

async function objectionTo([noun = '', ...rest]: string[]): Promise<string | undefined> {
  if (noun === '' || noun.startsWith('-')) return undefined
  if (!Object.hasOwn(commands, noun)) return `there is no ${noun}`
  let node: CommandNode = await commands[noun]!()
  const words = [...rest]
  while (isGroup(node)) {
    const word: string | undefined = words.shift()
    if (word === undefined || word.startsWith('-')) return undefined
    const inner: CommandNode | undefined = node.commands.find(
      ({ name }) => name === word || aliases[name] === word,
    )
    if (!inner) return `there is no ${node.name} ${word}`
    node = inner
  }
  const options: OptionSpec[] = [...(node.options ?? []), ...globalOptions]
  const flags = options.flatMap(({ flags }) => flags.split(/[ ,]+/))
  return words
    .filter((word) => /^--?[a-z]/.test(word))
    .map((word) => word.split('=')[0]!)
    .find((word) => !flags.includes(word) && !['--help', '-h', '--no-wait'].includes(word))
}

/** A folder with the packages that a reader of the pages has installed. */
const packages = join(cli.home, 'packages')
beforeAll(async () => {
  const sdk = join(packages, 'sdk')
  const { bundleSdk } = await import(pathToFileURL(join(root, 'scripts/packages/sdk.mjs')).href)
  await bundleSdk(sdk)
  const exports = { '.': './index.js', './testing': './testing.js' }
  writeFileSync(join(sdk, 'package.json'), JSON.stringify({ name: '@slipway/sdk', type: 'module', exports }))
  symlinkSync(join(root, 'packages/server'), join(packages, 'server'))
})

const runPages = [...new Set(blocks.filter(isRun).map(({ page }) => page))]

test.each(runPages)(
  'the commands of %s work, and leave nothing behind',
  async (page) => {
    const folder = mkdtempSync(join(cli.home, `${basename(page, '.md')}-`))
    // A server that root starts runs PostgreSQL as another user.
    for (const path of [cli.home, folder]) chmodSync(path, 0o711)
    const programs = join(folder, 'node_modules/.bin')
    mkdirSync(programs, { recursive: true })
    symlinkSync(binary, join(programs, 'slipway'))
    symlinkSync(join(root, 'packages/server/bin/slipway-server.js'), join(programs, 'slipway-server'))
    symlinkSync(packages, join(folder, 'node_modules/@slipway'))
    symlinkSync(cli.server.dataDir, join(folder, '.slipway'))
    const signIn = 'slipway login --credentials .slipway/credentials.json --quiet'
    const script = blocks
      .filter((block) => block.page === page && isRun(block))
      .map(({ line, text }) => `echo "line ${line}"\n${text}`)
    const { PATH: path, ...env } = { ...cli.base, HOME: folder, XDG_CONFIG_HOME: join(folder, 'config') }
    const program = startProgram(
      'bash',
      [
        '-c',
        `set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n${page === 'README.md' ? '' : signIn}\n${script.join('\n')}`,
      ],
      { cwd: folder, env: { ...env, PATH: `${programs}:${path}` } },
    )
    const { code, output, errors } = await program.ended()
    expect({ code, output: code === 0 ? '' : `${output}\n${errors}` }).toEqual({ code: 0, output: '' })
    expect(await cli.json('vm', 'list')).toEqual([])
    expect(await cli.json('disk', 'list')).toEqual([])
  },
  180_000,
)

test('the recorded events match the webhook reference', async () => {
  const events: Event[] = await cli.json('events', '--limit', '500')
  const unexpected = events.filter(({ type, data }) => {
    const facts = eventFacts[type as EventType]
    const hasAll = Object.keys(data).every((name) => name in facts.data)
    return facts.scope !== 'project' || !hasAll
  })
  expect(unexpected.map(({ type, data }) => [type, data])).toEqual([])
  expect(new Set(events.map(({ type }) => type)).size).toBeGreaterThan(12)
})
