import { defineConfig } from 'vitest/config'
import { base } from './vitest.config.ts'

/** npm run test:terraform: tests every resource, example and guide with the real Terraform. */
export default defineConfig({
  test: { ...base, include: ['packages/*/test/**/*.terraform.ts'], testTimeout: 600_000 },
})
