import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { startProgram } from '../src/program.ts'
import { root } from '../src/root.ts'

const mayInstall = process.getuid?.() === 0 && existsSync('/etc/debian_version')

test.skipIf(!mayInstall)(
  'packages are installed as soon as another process releases the package lists',
  async () => {
    const programs = mkdtempSync(join(tmpdir(), 'slipway-apt-'))
    onTestFinished(() => rmSync(programs, { recursive: true }))
    const calls = join(programs, 'calls')
    // Replaces the real program: the lists are locked when it is first called, and it installs nothing.
    const apt = `#!/bin/sh
echo "$@" >>${calls}
[ -e ${programs}/is-second ] && exit 0
: >${programs}/is-second
echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)" >&2
exit 100
`
    writeFileSync(join(programs, 'apt-get'), apt)
    chmodSync(join(programs, 'apt-get'), 0o755)
    const script = pathToFileURL(join(root, 'scripts/system-packages.mjs')).href
    // Check only the packages of one test file, so that nothing else is missing.
    const code = `const { ensureSystemPackages } = await import('${script}')
    console.log(JSON.stringify(ensureSystemPackages('cli/test/terminal.test.ts')))`
    const args = ['--input-type=module', '-e', code]
    const { output } = await startProgram(process.execPath, args, { env: { PATH: programs } }).ended()
    expect(JSON.parse(output)).toEqual({ missing: ['tmux'], required: ['tmux'] })
    const words = readFileSync(calls, 'utf8').trimEnd().split('\n')
    expect(words.map((line) => /(update|install)\b.*$/.exec(line)![0])).toEqual([
      'update',
      'update',
      'install -y --no-install-recommends tmux',
    ])
  },
)
