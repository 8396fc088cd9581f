import { unsafeCharacters } from '@slipway/contract/names'
import { answer, scriptedServer } from '@slipway/testing/scripted-server.ts'
import { afterAll, expect, test } from 'vitest'
import { freshHome } from './support/cli.ts'

const { slipway, remove } = freshHome()
afterAll(remove)

const project = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'
const hostile = 'ci\u001b]0;owned\u0007\u202etxt.exe\u009b2J'

async function against(reply: unknown, words: string[], status = 200) {
  const server = await scriptedServer(answer(status, reply))
  const env = { SLIPWAY_API_URL: server.url, SLIPWAY_ACCESS_KEY: 'slp_x', SLIPWAY_PROJECT: project }
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

test('names from elsewhere cannot steer the terminal, in a table, as YAML or as JSON', async () => {
  for (const form of ['table', 'yaml', 'json', 'columns=name']) {
    const { stdout, code } = await against({ items: [key], next_page_token: '' }, ['key', 'list', '-o', form])
    expect([form, code]).toEqual([form, 0])
    expect(stdout).toContain('txt.exe')
    expect(lines(stdout)).not.toMatch(unsafe)
    if (form === 'json') expect(JSON.parse(stdout)[0].name).toBe(hostile)
  }
})

test('the message of an error from elsewhere cannot steer the terminal', async () => {
  const body = { code: 'invalid_argument', message: hostile, request_id: 'r' }
  const { stderr, code } = await against(body, ['key', 'list'], 400)
  expect(code).not.toBe(0)
  expect(stderr).toContain('txt.exe')
  expect(lines(stderr)).not.toMatch(unsafe)
})

test('a serial log is printed harmless, and as it is with --raw', async () => {
  const content = `boot\tok\r\n${hostile}\n`
  const log = ['vm', 'log', project]
  const tame = await against({ content, next_offset: 1 }, log)
  expect(tame.stdout).toBe('boot\tok\r\nci\\u001b]0;owned\\u0007\\u202etxt.exe\\u009b2J\n')
  const raw = await against({ content, next_offset: 1 }, [...log, '--raw'])
  expect(raw.stdout).toBe(content)
})
