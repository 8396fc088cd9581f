import { configDefaults, defineConfig } from 'vitest/config'
import { base } from './vitest.config.ts'

const withBrowser = [
  'packages/console/test/!(guest-lines|usage-axis).test.ts',
  'packages/sdk/test/runtimes.test.ts',
]
const withGuests = ['packages/server/test/engines/{qemu-conformance,qemu-bad-luck,incus-conformance}.test.ts']
const withManyProcesses = [
  'packages/cli/test/{pages,terminal,mcp}.test.ts',
  'packages/server/test/{start,secrets}.test.ts',
  'packages/server/test/chaos/chaos.test.ts',
  'packages/server/test/operate/incus-doctor.test.ts',
  'packages/server/test/operations/processes.test.ts',
  'packages/server/test/store/embedded.test.ts',
]
const withManyCases = [
  'packages/server/test/domain/placement-fragmentation.test.ts',
  'packages/server/test/http/{fuzz,limits,database-away}.test.ts',
  'packages/server/test/operations/{model,laws,faults,races,time,demo}.test.ts',
  'packages/server/test/store/{placement,plans,migrate,migrated-data}.test.ts',
]
/** These compile packages. */
const withBuilds = ['packages/sdk/test/examples.test.ts', 'packages/testing/test/{packages,build}.test.ts']

/** npm run test:quick: what takes a minute and a half, for the loop of a change. It needs no system packages. */
export default defineConfig({
  test: {
    ...base,
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
