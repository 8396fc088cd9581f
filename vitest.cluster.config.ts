import { defineConfig } from 'vitest/config'
import { base } from './vitest.config.ts'

const include = ['packages/*/test/**/*.cluster.ts', 'packages/*/test/engines/incus/conformance.test.ts']

/** npm run test:cluster: runs the tests that need Incus daemons, in network namespaces that the tests create. */
export default defineConfig({ test: { ...base, include, testTimeout: 600_000 } })
