import { configDefaults, defineConfig } from 'vitest/config'
import { base } from './vitest.config.ts'

const core = [
  'packages/{console,contract,sdk,terraform,testing}/test/**/*.test.ts',
  'packages/server/test/{domain,engines,family,http,operations,records,runner,store}/*.test.ts',
]
const withBrowser = ['packages/console/test/console*.test.ts', 'packages/sdk/test/runtimes.test.ts']
const withGuests = ['packages/server/test/engines/{qemu-conformance,qemu-bad-luck}.test.ts']
const withManyProcesses = [
  'packages/sdk/test/testing.test.ts',
  'packages/terraform/test/life-cycle.test.ts',
  'packages/server/test/operations/processes.test.ts',
]
const withManyCases = [
  'packages/server/test/http/{fuzz,limits,database-away}.test.ts',
  'packages/server/test/operations/{model,laws,faults,races,time,demo}.test.ts',
  'packages/server/test/operations/{clock-steps,fairness,firewalls,large-fleet,locations,lost,one-connection,ranges}.test.ts',
  'packages/server/test/{domain/placement-fragmentation,family/attacks,records/examples}.test.ts',
  'packages/server/test/store/{placement,plans}.test.ts',
]
const withLongWaits = [
  'packages/server/test/http/{waits,tokens,mail,tls,proxies}.test.ts',
  'packages/server/test/store/{addresses,at-rest}.test.ts',
]
/** These suites compile packages. */
const withBuilds = ['packages/sdk/test/examples.test.ts', 'packages/testing/test/{packages,build}.test.ts']

/** npm run test:quick: runs the short tests of the core, while you work. They need no system packages. */
export default defineConfig({
  test: {
    ...base,
    include: core,
    // Each worker loads and compiles the whole server, so a fourth worker does not make a short run faster.
    maxWorkers: 3,
    exclude: [
      ...configDefaults.exclude,
      ...withBrowser,
      ...withGuests,
      ...withManyProcesses,
      ...withManyCases,
      ...withLongWaits,
      ...withBuilds,
    ],
  },
})
