import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The files that take longest, longest first. */
const longest = [
  'server/test/chaos/chaos.test.ts',
  'server/test/operations/model.test.ts',
  'server/test/operations/faults.test.ts',
  'server/test/start.test.ts',
  'server/test/operations/laws.test.ts',
  'console/test/tenant.test.ts',
  'console/test/pages.test.ts',
  'server/test/engines/qemu-guest.test.ts',
  'server/test/store/embedded.test.ts',
  'sdk/test/examples.test.ts',
  'server/test/engines/qemu-conformance.test.ts',
  'server/test/http/fuzz.test.ts',
  'server/test/operations/races.test.ts',
  'server/test/engines/qemu-service.test.ts',
  'server/test/operations/processes.test.ts',
  'server/test/operations/time.test.ts',
]

/** Begins the long files early, so that a run does not end with one of them alone. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = longest.findIndex((name) => moduleId.endsWith(name))
      return at === -1 ? longest.length : at
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
