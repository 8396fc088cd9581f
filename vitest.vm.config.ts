import { defineConfig } from 'vitest/config'
import { base } from './vitest.config.ts'

/** npm run test:vm: runs the tests that boot real guests and take too long for `npm test`. */
export default defineConfig({
  test: { ...base, include: ['packages/*/test/**/*.vm.ts'], testTimeout: 1_800_000 },
})
