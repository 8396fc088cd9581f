// npm run chaos [-- --seed N --faults N]: the chaos run of the suite with as many faults as wanted, by default 1,000.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ensureInstalled, leave, root } from './install.mjs'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    faults: { type: 'string', default: '1000' },
  },
})
for (const [name, value] of Object.entries(values))
  if (!/^\d{1,10}$/.test(value)) leave(`--${name} ${value}: must be a number`)

ensureInstalled()
const vitest = join(root, 'node_modules/vitest/vitest.mjs')
const { status } = spawnSync(process.execPath, [vitest, 'run', 'packages/server/test/chaos/chaos.test.ts'], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, SLIPWAY_SEED: values.seed, SLIPWAY_CHAOS_FAULTS: values.faults },
})
process.exitCode = status ?? 1
