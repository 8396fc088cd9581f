import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The slowest test files, slowest first. */
const longest = [
  'console/test/console-pages.test.ts',
  'console/test/console.test.ts',
  'server/test/operations/laws.test.ts',
  'server/test/start.test.ts',
  'cli/test/pages.test.ts',
  'server/test/operations/faults.test.ts',
  'server/test/engines/qemu-conformance.test.ts',
  'server/test/operations/model.test.ts',
  'server/test/postgres/embedded.test.ts',
  'sdk/test/testing.test.ts',
  'server/test/chaos/chaos.test.ts',
  'server/test/log.test.ts',
  'server/test/engines/incus/conformance.test.ts',
  'testing/test/packages.test.ts',
  'server/test/operate/backup.test.ts',
  'server/test/store/at-rest.test.ts',
  'sdk/test/examples.test.ts',
  'server/test/dev/levers.test.ts',
  'cli/test/mcp.test.ts',
  'server/test/operations/processes.test.ts',
  'server/test/http/limits.test.ts',
  'server/test/engines/qemu-bad-luck.test.ts',
  'server/test/http/fuzz.test.ts',
  'server/test/store/placement.test.ts',
  'server/test/postgres/migrate.test.ts',
  'server/test/operations/races.test.ts',
  'server/test/http/waits.test.ts',
  'terraform/test/life-cycle.test.ts',
  'testing/test/build.test.ts',
]

/** Starts the slow files first, so that none of them runs alone at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex((name) => moduleId.endsWith(name))
      return at === -1 ? longest.length : at
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
