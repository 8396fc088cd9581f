import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { eventually } from '../src/eventually.ts'
import { startProgram } from '../src/program.ts'
import { root } from '../src/root.ts'

/** A checkout that has its own scripts and CLI and shares the rest, so that its build does not affect other tests. */
const checkout = mkdtempSync(join(tmpdir(), 'slipway-build-'))
afterAll(() => rmSync(checkout, { recursive: true }))
cpSync(join(root, 'scripts'), join(checkout, 'scripts'), { recursive: true })
for (const name of ['node_modules', 'package-lock.json', 'packages/sdk', 'packages/contract']) {
  mkdirSync(join(checkout, name, '..'), { recursive: true })
  symlinkSync(join(root, name), join(checkout, name))
}
for (const name of ['server', 'cli']) {
  const [from, to] = [join(root, 'packages', name), join(checkout, 'packages', name)]
  mkdirSync(to)
  cpSync(join(from, 'package.json'), join(to, 'package.json'))
  cpSync(join(from, 'src'), join(to, 'src'), { recursive: true })
}

const programs = ['packages/server/dist/main.js', 'packages/cli/dist/slipway.js'].map((name) =>
  join(checkout, name),
)

/**
 * Builds as `npm start` does, and waits until its child processes have ended. Returns the time when each program was
 * built.
 */
async function build(): Promise<number[]> {
  const script = `await (await import('./scripts/build.mjs')).build(); console.log('built'); setInterval(() => {}, 1000)`
  const builder = startProgram(process.execPath, ['--input-type=module', '-e', script], { cwd: checkout })
  await builder.line('built')
  const children = `/proc/${builder.pid}/task/${builder.pid}/children`
  await eventually(() => readFileSync(children, 'utf8') === '')
  await builder.kill()
  return programs.map((file) => statSync(file).mtimeMs)
}

test.skipIf(process.platform !== 'linux')(
  'a build leaves no process behind, and the next one builds nothing unless a source has changed',
  async () => {
    const builtAt = await build()
    expect(await build()).toEqual(builtAt)
    writeFileSync(join(checkout, 'packages/cli/src/main.ts'), '// changed\n', { flag: 'a' })
    expect(await build()).not.toEqual(builtAt)
  },
)
