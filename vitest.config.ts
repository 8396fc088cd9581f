import { defineConfig } from 'vitest/config'
import { LongestFirst } from './packages/testing/src/longest-first.ts'

export const base = {
  include: ['packages/*/test/**/*.test.ts'],
  globalSetup: ['packages/testing/src/build.setup.ts', 'packages/testing/src/postgres.setup.ts'],
  testTimeout: 60_000,
  hookTimeout: 120_000,
  pool: 'forks',
  // Files of one worker share the modules they load: most of them load the whole server.
  isolate: false,
  // Tests wait more than they compute.
  maxWorkers: 4,
  sequence: { sequencer: LongestFirst },
}

export default defineConfig({ test: base })
