import { defineConfig } from 'vitest/config'
import { base } from './vitest.config.ts'

const include = ['packages/*/test/**/*.cluster.ts', 'packages/*/test/engines/incus/conformance.test.ts']

/** npm run test:cluster: all that needs an Incus daemon, in network namespaces that it makes itself. */
export default defineConfig({ test: { ...base, include, testTimeout: 600_000 } })
