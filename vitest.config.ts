import { defineConfig } from 'vitest/config'

export const base = {
  include: ['packages/*/test/**/*.test.ts'],
  globalSetup: ['packages/testing/src/build.setup.ts', 'packages/testing/src/postgres.setup.ts'],
  testTimeout: 60_000,
  hookTimeout: 120_000,
  pool: 'forks',
  // Tests wait more than they compute.
  maxWorkers: 3,
}

export default defineConfig({ test: base })
