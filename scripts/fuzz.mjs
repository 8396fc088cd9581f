// npm run test:fuzz: runs Schemathesis, a Python program that generates requests from the OpenAPI document
// and sends them to a real service.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstalled, root } from './install.mjs'
import { exitWithMessage } from './phase.mjs'

const version = '4.32.5'
const folder = join(root, '.cache', `schemathesis-${version}`)
const program = join(folder, 'bin/schemathesis')

ensureInstalled('all')
if (!existsSync(program)) install()
const vitest = join(root, 'node_modules/vitest/vitest.mjs')
const { status } = spawnSync(
  process.execPath,
  [vitest, 'run', '--config', 'vitest.fuzz.config.ts', ...process.argv.slice(2)],
  { cwd: root, stdio: 'inherit', env: { ...process.env, SCHEMATHESIS: program } },
)
process.exitCode = status ?? 1

function install() {
  const run = (command, args) => spawnSync(command, args, { stdio: ['ignore', 2, 2] }).status === 0
  if (!run('python3', ['-c', 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))']))
    exitWithMessage('Nothing was tested: python3 must be Python 3.10 or later with venv and pip.')
  console.error(`Installing Schemathesis ${version} …`)
  const pip = ['-m', 'pip', 'install', '--quiet', `schemathesis==${version}`]
  if (!run('python3', ['-m', 'venv', '--clear', folder]) || !run(join(folder, 'bin/python'), pip))
    exitWithMessage('Nothing was tested: Schemathesis could not be installed.')
}
