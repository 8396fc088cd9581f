import { defineConfig } from 'vitest/config'
import { base } from './vitest.config.ts'

/** npm run test:vm: what takes many real guests, and too long for every run. */
export default defineConfig({
  test: { ...base, include: ['packages/*/test/**/*.vm.ts'], testTimeout: 1_800_000 },
})
