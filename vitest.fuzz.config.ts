import { defineConfig } from 'vitest/config'
import { base } from './vitest.config.ts'

/** npm run test:fuzz: sends requests that Schemathesis generates. */
export default defineConfig({
  test: { ...base, include: ['packages/*/test/**/*.fuzz.ts'], testTimeout: 3_600_000 },
})
