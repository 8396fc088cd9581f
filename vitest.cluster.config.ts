import { defineConfig } from 'vitest/config'
import { base } from './vitest.config.ts'

/** npm run test:cluster: what needs an Incus daemon, in network namespaces that it makes itself. */
export default defineConfig({
  test: { ...base, include: ['packages/*/test/**/*.cluster.ts'], testTimeout: 600_000 },
})
