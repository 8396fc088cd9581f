import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startProgram } from '@slipway/testing/program.ts'
import { beforeAll, expect, test } from 'vitest'
import { completionScripts, type Shell } from '../src/commands/completion/scripts.ts'
import { binary } from './support/cli.ts'
import { isMissing } from './support/programs.ts'
import { cliWithServer } from './support/with-server.ts'

const cli = cliWithServer()
const { home, base, runAs } = cli
symlinkSync(binary, join(home, 'slipway'))
const verbs = ['show', 'start', 'stop', 'ssh', 'scp']
beforeAll(() => cli.createVm('train-7'))

const complete = async (...words: string[]) =>
  (await cli.slipway('__complete', '--', ...words)).stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split('\t')[0])

test('completion offers commands, options, fixed values and live names', async () => {
  expect(await complete('vm', 's')).toEqual(verbs)
  expect(await complete('vm', 'create', '--ssh')).toEqual(['--ssh-key'])
  expect(await complete('vm', 'list', '-o', '')).toEqual(['table', 'json', 'yaml', 'columns='])
  expect(await complete('vm', 'show', 'tr')).toEqual(['train-7'])
  expect(await complete('vm', 'get', 'tr')).toEqual(['train-7'])
  expect(await complete('vm', 'create', 'x', '--location', 'us')).toEqual(['us-east1-a'])
  expect(await complete('admin', 'user', '')).toEqual([
    'list',
    'show',
    'create',
    'suspend',
    'restore',
    'reset',
    'unmark',
    'remove-totp',
  ])
  expect(await complete('vm', 'ssh', 'train-7', '--', '')).toEqual([])
  expect(await complete('help', 'vm', 's')).toEqual(verbs)
})

test('completion offers every fixed value, also within a list, after a colon and after an equals sign', async () => {
  expect(await complete('vm', 'list', '--state', 'running,s')).toEqual([
    'running,stopping',
    'running,stopped',
    'running,starting',
  ])
  expect(await complete('vm', 'list', '--state=stopp')).toEqual(['--state=stopping', '--state=stopped'])
  expect(await complete('vm', 'list', '-o', 'columns=name,pu')).toEqual(['columns=name,public_ip'])
  expect(await complete('vm', 'create', '--disk', 'datasets:read-o')).toEqual(['datasets:read-only'])
  expect(await complete('vm', 'create', '--location', 'us-east1-a,')).toEqual([
    'us-east1-a,us-east1-a',
    'us-east1-a,eu-north1-a',
    'us-east1-a,any',
  ])
  expect(await complete('vm', 'create', '--on-expiry', '')).toEqual(['stop', 'delete'])
  expect(await complete('webhook', 'create', 'https://x', '--events', 'vm.running,operation.f')).toEqual([
    'vm.running,operation.failed',
  ])
  expect(await complete('admin', 'price', 'set', 'a100.1')).toEqual(['a100.1x='])
})

test('completion prints nothing when the service is unavailable', async () => {
  const run = await runAs(['__complete', '--', 'vm', 'show', ''], {
    env: { ...cli.env, SLIPWAY_API_URL: 'http://127.0.0.1:1' },
  })
  expect(run).toEqual({ code: 0, stdout: '', stderr: '' })
})

/** Loads the script into the shell itself, then runs `code` there. */
async function inShell(shell: Shell, code: string): Promise<string> {
  const script = join(home, `completion.${shell}`)
  writeFileSync(script, completionScripts[shell])
  const flags = { bash: ['--norc'], zsh: ['-f'], fish: ['--no-config'] }[shell]
  const env = { ...base, ...cli.env, PATH: `${home}:${base.PATH}` }
  const program = startProgram(shell, [...flags, '-c', code.replaceAll('SCRIPT', script)], { env })
  const { output, errors } = await program.ended()
  expect(errors).toBe('')
  return output
}

/** Returns the completions of bash for a line that bash has split into these words. */
async function inBash(...words: string[]): Promise<string[]> {
  const line = `COMP_WORDS=(slipway ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}`
  const output = await inShell('bash', `source SCRIPT; ${line}; _slipway; printf "%s\\n" "\${COMPREPLY[@]}"`)
  return output.trim().split('\n')
}

test('bash completes the words of a command, and live names', async () => {
  expect(await inBash('vm', 's')).toEqual(verbs)
  expect(await inBash('vm', 'show', 't')).toEqual(['train-7'])
})

test('bash completes after characters at which it splits words', async () => {
  expect(await inBash('vm', 'create', '--image', 'debian12', ':', 'la')).toEqual(['latest'])
  expect(await inBash('vm', 'create', '--image', 'debian12', ':')).toEqual(['latest'])
  expect(await inBash('vm', 'list', '--state', '=', 'runn')).toEqual(['running'])
  expect(await inBash('vm', 'list', '-o', 'columns', '=', 'pub')).toEqual(['public_ip'])
})

test.skipIf(isMissing('zsh'))('zsh completes the words of a command, with descriptions', async () => {
  // Outside its line editor, zsh shows no completions, so stubs print what the script passes to zsh.
  const stubs = `compdef() { }; _describe() { print -l -- "\${(@P)2}" }; _files() { print files }`
  const output = await inShell('zsh', `${stubs}; source SCRIPT; words=(slipway vm s); CURRENT=3; _slipway`)
  expect(
    output
      .trim()
      .split('\n')
      .map((line) => line.split(':')[0]),
  ).toEqual(verbs)
  expect(output).toContain('show:show one VM')
  expect(
    await inShell(
      'zsh',
      `${stubs}; source SCRIPT; words=(slipway vm create --ssh-key ""); CURRENT=5; _slipway`,
    ),
  ).toBe('files\n')
})

test.skipIf(isMissing('fish'))('fish completes the words of a command, with descriptions', async () => {
  const output = await inShell('fish', "source SCRIPT; complete -C 'slipway vm s'")
  const words = output
    .trim()
    .split('\n')
    .map((line) => line.split('\t')[0])
  expect(words.toSorted()).toEqual(verbs.toSorted())
  expect(output).toContain('show\tshow one VM')
})
