import { defineConfig } from 'vitest/config'
import { LongestFirst } from './packages/testing/src/longest-first.ts'

/**
 * What tests make up at random follows from it. It stays the same unless another is asked for, so that a change is
 * judged by what it changes; `SLIPWAY_SEED=random` looks for what no seed has shown yet.
 */
const { SLIPWAY_SEED: asked = '2611' } = process.env
const seed = asked === 'random' ? String(Date.now() % 2 ** 31) : asked

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

export default defineConfig({ test: base })
