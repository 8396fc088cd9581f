// npm run chaos: runs the chaos test with a chosen number of faults.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ensureInstalled, root } from './install.mjs'
import { exitWithMessage } from './phase.mjs'

const usage = `npm run chaos [-- --faults N --seed N]

  --faults N  number of faults (default: 1000)
  --seed N    seed for the faults and the tenants' requests (default: a new one each time)`

const given = read()
if (given.help) {
  console.log(usage)
  process.exit()
}
for (const name of ['seed', 'faults'])
  if (!/^\d{1,10}$/.test(given[name])) exitWithMessage(`--${name} ${given[name]}: must be a number`)

ensureInstalled('all')
const vitest = join(root, 'node_modules/vitest/vitest.mjs')
const { status } = spawnSync(process.execPath, [vitest, 'run', 'packages/server/test/chaos/chaos.test.ts'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, SLIPWAY_SEED: given.seed, SLIPWAY_CHAOS_FAULTS: given.faults },
})
process.exitCode = status ?? 1

function read() {
  const options = {
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    faults: { type: 'string', default: '1000' },
    help: { type: 'boolean', short: 'h' },
  }
  try {
    return parseArgs({ options }).values
  } catch (error) {
    exitWithMessage(`${error.message}\n\n${usage}`)
  }
}
