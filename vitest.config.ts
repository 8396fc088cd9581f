import { configDefaults, defineConfig } from 'vitest/config'
import { LongestFirst } from './packages/testing/src/setup/longest-first.ts'

/** The seed of all random cases. It is fixed, so that only a code change changes the result. */
const { SLIPWAY_SEED: seed = '2611' } = process.env

export const base = {
  include: ['packages/*/test/**/*.test.ts'],
  globalSetup: ['packages/testing/src/setup/build.ts', 'packages/testing/src/setup/postgres.ts'],
  setupFiles: ['packages/testing/src/setup/seed.ts'],
  env: { SLIPWAY_SEED: seed },
  // The time limits are long, so that a test does not fail only because the machine is busy.
  testTimeout: 180_000,
  hookTimeout: 240_000,
  teardownTimeout: 60_000,
  expect: { poll: { timeout: 60_000 } },
  pool: 'forks',
  // The test files of a worker share loaded modules, because most of these files load the whole server.
  isolate: false,
  // Four workers do not need four cores, because tests wait more than they compute.
  maxWorkers: 4,
  sequence: { sequencer: LongestFirst },
}

const { globalSetup, sequence, ...projectOptions } = base
const consoleSuites = 'packages/console/test/console*.test.ts'

/**
 * npm test. The browser suites are a separate project, so that they share no worker with other files: Playwright makes
 * Node track every promise in the process, which would make a server in the same process a third slower.
 */
export default defineConfig({
  test: {
    ...base,
    projects: [
      { test: { ...projectOptions, name: 'console', include: [consoleSuites] } },
      { test: { ...projectOptions, name: 'rest', exclude: [...configDefaults.exclude, consoleSuites] } },
    ],
  },
})
