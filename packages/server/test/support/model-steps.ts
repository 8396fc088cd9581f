import fc from 'fast-check'

/** Actions of a tenant, and events that affect it. Numbers choose among the resources that exist at that moment. */
export type Step =
  | { do: 'nothing' }
  | { do: 'createVm'; name: number; gpus: 1 | 2; disk: number | null }
  | { do: 'start' | 'stop' | 'reset' | 'replace' | 'deleteVm' | 'crash' | 'refusePower'; vm: number }
  | { do: 'retype'; vm: number; gpus: 1 | 2 }
  | { do: 'loseHost'; vm: number; isDeleted: boolean }
  | { do: 'createDisk'; name: number }
  | { do: 'attach' | 'detach'; vm: number; disk: number }
  | { do: 'grow'; disk: number; gib: number }
  | { do: 'deleteDisk'; disk: number }
  | { do: 'createRule'; name: number }
  | { do: 'changeRule'; rule: number; port: number }
  | { do: 'deleteRule'; rule: number }
  | { do: 'fault'; method: number; kind: 'fail' | 'lie' | 'forget' }
  | { do: 'createGroup'; name: number; count: number }
  | { do: 'resizeGroup'; group: number; count: number }
  | { do: 'deleteGroup'; group: number }
  | { do: 'waitForVm'; name: number }
  | { do: 'moveClock' }

const some = fc.nat(9)
const gpus = fc.constantFrom<1 | 2>(1, 2)
const all = (...names: ('start' | 'stop' | 'reset' | 'replace' | 'deleteVm' | 'crash' | 'refusePower')[]) =>
  fc.record({ do: fc.constantFrom(...names), vm: some })

/** The empty step comes first, because shrinking replaces irrelevant steps with it. */
export const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 1, arbitrary: fc.constant({ do: 'nothing' as const }) },
  {
    weight: 14,
    arbitrary: fc.record({
      do: fc.constant('createVm' as const),
      name: some,
      gpus,
      disk: fc.option(some, { freq: 3 }),
    }),
  },
  { weight: 30, arbitrary: all('start', 'stop', 'reset', 'replace') },
  { weight: 8, arbitrary: all('deleteVm') },
  { weight: 3, arbitrary: all('crash', 'refusePower') },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('retype' as const), vm: some, gpus }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('loseHost' as const), vm: some, isDeleted: fc.boolean() }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('createDisk' as const), name: some }) },
  {
    weight: 14,
    arbitrary: fc.record({ do: fc.constantFrom('attach' as const, 'detach' as const), vm: some, disk: some }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('grow' as const), disk: some, gib: fc.nat(40) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('deleteDisk' as const), disk: some }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('createRule' as const), name: some }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('changeRule' as const), rule: some, port: fc.nat(9) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('deleteRule' as const), rule: some }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('createGroup' as const),
      name: some,
      count: fc.constantFrom(2, 3),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('resizeGroup' as const), group: some, count: fc.nat(3) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('deleteGroup' as const), group: some }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('waitForVm' as const), name: some }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('fault' as const),
      method: some,
      kind: fc.constantFrom('fail' as const, 'lie' as const, 'forget' as const),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'moveClock' as const }) },
)
