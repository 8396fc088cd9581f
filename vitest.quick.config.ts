import { configDefaults, defineConfig } from 'vitest/config'
import { base } from './vitest.config.ts'

const withBrowser = ['packages/console/test/console*.test.ts', 'packages/sdk/test/runtimes.test.ts']
const withGuests = ['packages/server/test/engines/{qemu-conformance,qemu-bad-luck,incus/conformance}.test.ts']
const withManyProcesses = [
  'packages/cli/test/{pages,terminal,mcp}.test.ts',
  'packages/sdk/test/testing.test.ts',
  'packages/terraform/test/life-cycle.test.ts',
  'packages/server/test/{start,secrets}.test.ts',
  'packages/server/test/chaos/chaos.test.ts',
  'packages/server/test/operate/incus-doctor.test.ts',
  'packages/server/test/operations/processes.test.ts',
  'packages/server/test/postgres/embedded.test.ts',
]
const withManyCases = [
  'packages/server/test/attacks/{floods,sign-in,single-sign-on}.test.ts',
  'packages/server/test/billing/{month,stripe}.test.ts',
  'packages/server/test/domain/placement-fragmentation.test.ts',
  'packages/server/test/events/many-streams.test.ts',
  'packages/server/test/finding/vm-cost.test.ts',
  'packages/server/test/http/{fuzz,limits,database-away}.test.ts',
  'packages/server/test/operations/{model,laws,faults,races,time,demo}.test.ts',
  'packages/server/test/operations/{firewalls,large-fleet,lost,one-connection,ranges}.test.ts',
  'packages/server/test/store/{placement,plans}.test.ts',
]
/** These suites compile packages. */
const withBuilds = ['packages/sdk/test/examples.test.ts', 'packages/testing/test/{packages,build}.test.ts']

/** npm run test:quick: runs the short tests, while you work. They need no system packages. */
export default defineConfig({
  test: {
    ...base,
    // Each worker loads and compiles the whole server, so a fourth worker does not make a short run faster.
    maxWorkers: 3,
    exclude: [
      ...configDefaults.exclude,
      ...withBrowser,
      ...withGuests,
      ...withManyProcesses,
      ...withManyCases,
      ...withBuilds,
    ],
  },
})
