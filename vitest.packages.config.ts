import { defineConfig } from 'vitest/config'
import { base } from './vitest.config.ts'

/** npm run test:packages: installs the packages as users will, outside the checkout, and uses them. */
export default defineConfig({
  test: {
    ...base,
    include: ['packages/*/test/**/*.packages.ts'],
    globalSetup: ['packages/testing/src/setup/build.ts'],
    testTimeout: 300_000,
    hookTimeout: 600_000,
  },
})
