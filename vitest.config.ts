import { configDefaults, defineConfig } from 'vitest/config'
import { LongestFirst } from './packages/testing/src/setup/longest-first.ts'

/** Random cases follow from this seed. It is fixed, so that a run shows the effect of a change and nothing else. */
const { SLIPWAY_SEED: seed = '2611' } = process.env

export const base = {
  include: ['packages/*/test/**/*.test.ts'],
  globalSetup: ['packages/testing/src/setup/build.ts', 'packages/testing/src/setup/postgres.ts'],
  setupFiles: ['packages/testing/src/setup/seed.ts'],
  env: { SLIPWAY_SEED: seed },
  // Bounds are for failures alone: a busy machine is no failure.
  testTimeout: 180_000,
  hookTimeout: 240_000,
  teardownTimeout: 60_000,
  expect: { poll: { timeout: 60_000 } },
  pool: 'forks',
  // Files of one worker share the modules they load: most of them load the whole server.
  isolate: false,
  // Tests wait more than they compute.
  maxWorkers: 4,
  sequence: { sequencer: LongestFirst },
}

const { globalSetup, sequence, ...ofEachProject } = base
const consoleSuites = 'packages/console/test/console*.test.ts'

/**
 * npm test. The browser suites are a project of their own, so that no other file gets their worker: Playwright has Node
 * follow every promise of its process from then on, which would make a server in the same process a third slower.
 */
export default defineConfig({
  test: {
    ...base,
    projects: [
      { test: { ...ofEachProject, name: 'console', include: [consoleSuites] } },
      { test: { ...ofEachProject, name: 'rest', exclude: [...configDefaults.exclude, consoleSuites] } },
    ],
  },
})
