import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startProgram } from '../src/program.ts'
import { root } from '../src/root.ts'

const chaos = (...args: string[]) =>
  startProgram(process.execPath, [join(root, 'scripts/chaos.mjs'), ...args]).ended()

test('npm run chaos --help prints the usage and starts nothing', async () => {
  const { code, output } = await chaos('--help')
  expect(code).toBe(0)
  for (const word of ['npm run chaos', '--faults N', '--seed N', '1000']) expect(output).toContain(word)
})

test.each([
  [['--fault', '3'], '--fault'],
  [['3'], `'3'`],
  [['--faults', 'many'], '--faults many: must be a number'],
])('npm run chaos rejects %j with a message and without a stack trace', async (args, words) => {
  const { code, errors } = await chaos(...args)
  expect(code).toBe(1)
  expect(errors).toContain(words)
  expect(errors).not.toMatch(/^\s+at /m)
})
