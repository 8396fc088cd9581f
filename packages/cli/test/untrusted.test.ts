import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { unsafeCharacters } from '@slipway/contract/names'
import { answer, scriptedServer } from '@slipway/testing/scripted-server.ts'
import { afterAll, expect, test } from 'vitest'
import { freshHome } from './support/cli.ts'
import { isMissing, placeProgram } from './support/programs.ts'
import { openTerminal } from './support/terminal.ts'

const { home, base, slipway, remove } = freshHome()
afterAll(remove)

const project = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'
const hostile = 'ci\u001b]0;owned\u0007\u202etxt.exe\u009b2J'

async function against(reply: unknown, words: string[], more: { status?: number; PATH?: string } = {}) {
  const server = await scriptedServer(answer(more.status ?? 200, reply))
  const env = {
    ...(more.PATH && { PATH: more.PATH }),
    SLIPWAY_API_URL: server.url,
    SLIPWAY_ACCESS_KEY: 'slp_x',
    SLIPWAY_PROJECT: project,
  }
  const run = await slipway(words, { env })
  await server.close()
  return run
}

const key = {
  id: project,
  name: hostile,
  role: 'read',
  prefix: 'slp_abc',
  created_by: '',
  created_at: '2026-11-14T23:50:00.000Z',
  expires_at: '',
  last_used_at: '',
  allowed_cidrs: [],
}

const unsafe = new RegExp(`[${unsafeCharacters}]`)
const lines = (text: string) => text.replaceAll('\n', '')

test('names from other users cannot control the terminal, in a table, as YAML or as JSON', async () => {
  for (const form of ['table', 'yaml', 'json', 'columns=name']) {
    const { stdout, code } = await against({ items: [key], next_page_token: '' }, ['key', 'list', '-o', form])
    expect([form, code]).toEqual([form, 0])
    expect(stdout).toContain('txt.exe')
    expect(lines(stdout)).not.toMatch(unsafe)
    if (form === 'json') expect(JSON.parse(stdout)[0].name).toBe(hostile)
  }
})

test('error messages from a server cannot control the terminal', async () => {
  const body = { code: 'invalid_argument', message: hostile, request_id: 'r' }
  const { stderr, code } = await against(body, ['key', 'list'], { status: 400 })
  expect(code).not.toBe(0)
  expect(stderr).toContain('txt.exe')
  expect(lines(stderr)).not.toMatch(unsafe)
})

test('a serial log is printed without control sequences, and unchanged with --raw', async () => {
  const content = `boot\tok\r\n${hostile}\nsafe\rEVIL\n\r`
  const log = ['vm', 'log', project]
  const tame = await against({ content, next_offset: 1 }, log)
  expect(tame.stdout).toBe(
    'boot\tok\r\nci\\u001b]0;owned\\u0007\\u202etxt.exe\\u009b2J\nsafe\\u000dEVIL\n\\u000d',
  )
  const raw = await against({ content, next_offset: 1 }, [...log, '--raw'])
  expect(raw.stdout).toBe(content)
})

test('a line break in a serial log is printed even if it arrives in two parts', async () => {
  const piece = (content: string, next_offset: number) => answer(200, { content, next_offset })
  const server = await scriptedServer(
    piece('one\r', 4),
    piece('\ntwo\r', 9),
    piece('three', 14),
    piece('', 14),
  )
  const env = { SLIPWAY_API_URL: server.url, SLIPWAY_ACCESS_KEY: 'slp_x', SLIPWAY_PROJECT: project }
  const { stdout } = await slipway(['vm', 'log', project, '--all'], { env })
  await server.close()
  expect(stdout).toBe('one\r\ntwo\\u000dthree')
})

const vm = {
  id: project,
  name: 'train-7',
  state: 'STATE_RUNNING',
  ssh_destination: 'ubuntu@203.0.113.7',
  ssh_host_keys: [],
}

test('an SSH address from a server starts only the requested program', async () => {
  const bin = join(home, 'bin')
  const started = join(home, 'started')
  for (const program of ['ssh', 'scp']) placeProgram(bin, program, `echo "$0 $*" >> ${started}`)
  const PATH = `${bin}:${base.PATH}`
  const hostileVms = [
    { ...vm, ssh_destination: '-oProxyCommand=evil@203.0.113.7' },
    { ...vm, id: 'x -oProxyCommand=evil' },
    { ...vm, name: 'x\n  ProxyCommand evil' },
  ]
  const commands = [
    ['vm', 'ssh', project],
    ['vm', 'scp', 'a', `${project}:`],
    ['vm', 'tunnel', project, '8888'],
  ]
  for (const words of commands)
    for (const reply of hostileVms) {
      const { code, stderr } = await against(reply, words, { PATH })
      expect(code, JSON.stringify(reply)).toBe(1)
      expect(stderr).toContain('not safe to pass to ssh')
      expect(lines(stderr)).not.toMatch(unsafe)
    }
  expect(existsSync(started)).toBe(false)
  // A safe address does start these programs.
  expect((await against(vm, commands[0]!, { PATH })).code).toBe(0)
  expect(readFileSync(started, 'utf8')).toMatch(/^\S+\/ssh .* -p 22 -- ubuntu@203\.0\.113\.7\n$/)
})

test.skipIf(isMissing('tmux'))('a link from a server is opened only if it is a web link', async () => {
  const bin = join(home, 'browsers')
  const opened = join(home, 'opened')
  for (const program of ['xdg-open', 'open']) placeProgram(bin, program, `echo "$*" >> ${opened}`)
  const env = { ...base, PATH: `${bin}:${base.PATH}`, SLIPWAY_ACCESS_KEY: 'slp_x' }
  const terminal = openTerminal({ folder: home, env })
  for (const url of [
    'file:///etc/passwd',
    '-a Calculator',
    'vscode://evil',
    'https://pay.example.com/x?a=1',
  ]) {
    const server = await scriptedServer(answer(200, { url, expires_at: '' }))
    terminal.run(`billing ${project}`, `SLIPWAY_API_URL=${server.url}`)
    expect(await terminal.see(/ended with 0/)).toContain(url)
    await server.close()
  }
  await expect.poll(() => existsSync(opened)).toBe(true)
  terminal.close()
  expect(readFileSync(opened, 'utf8')).toBe('https://pay.example.com/x?a=1\n')
})
