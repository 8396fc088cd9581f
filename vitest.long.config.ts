import { readdirSync, readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { base } from './vitest.config.ts'

const { SLIPWAY_SEED: seed = String(Date.now() % 2 ** 31) } = process.env
console.log(`Seed ${seed}. SLIPWAY_SEED=${seed} npm run test:long repeats this run.`)

/** The suites whose cases come from the seed. */
const randomSuites = readdirSync('packages', { recursive: true, encoding: 'utf8' })
  .filter((name) => /^[^/]+\/test\/.*\.test\.ts$/.test(name))
  .map((name) => `packages/${name}`)
  .filter((path) => /'(fast-check|@slipway\/testing\/setup\/counts\.ts)'/.test(readFileSync(path, 'utf8')))

/** npm run test:long: runs more random cases than `npm test`, with a new seed, and the suites in *.long.ts. */
export default defineConfig({
  test: {
    ...base,
    include: [...randomSuites, 'packages/*/test/**/*.long.ts'],
    env: { SLIPWAY_SEED: seed, SLIPWAY_LONG: '1' },
    testTimeout: 1_800_000,
  },
})
