import type { AttachedDisk, Call, DiskSpec, Engine, HostReport, VmStatus } from '../../src/engines/engine.ts'
import type { Database } from '../../src/postgres/database.ts'
import { simulated } from '../../src/store/simulated/objects.ts'

/** A simulated engine, and the data that a mutation of it needs. */
interface Subject {
  engine: Engine
  database: Database
  location: string
  publicAddress: string
  /** Work that is done some time after its call has returned. */
  late: (() => Promise<unknown>)[]
}

/** The methods that a fault replaces; the others stay unchanged. */
type Mutation = (subject: Subject) => Partial<Engine>

// biome-ignore lint/suspicious/noExplicitAny: a fault wraps methods of every shape
type Change = (...args: any[]) => Promise<unknown>
type ChangingMethod =
  | (typeof vmMethods)[number]
  | (typeof diskMethods)[number]
  | (typeof captureMethods)[number]
  | 'powerVm'

const vmMethods = [
  'ensureVm',
  'removeVm',
  'attachDisk',
  'detachDisk',
  'setPublicAddress',
  'applyFirewall',
] as const
const diskMethods = ['ensureDisk', 'growDisk', 'removeDisk'] as const
const captureMethods = ['capture', 'removeCapture'] as const
const actions = ['shutdown', 'off', 'reset'] as const

interface KnownObject {
  highest: number
  isThere: boolean
  isRemoved: boolean
  /** Records this generation as already handled by the engine. */
  note(generation: number): Promise<unknown>
}

async function findKnown(
  { database, location }: Subject,
  method: ChangingMethod,
  id: string,
): Promise<KnownObject> {
  if (diskMethods.some((name) => name === method)) {
    const disk = await simulated.findDisk(database, id)
    const note = (generation: number) =>
      simulated.putDisk(database, { id, location, generation, sizeGib: disk?.size_gib ?? 0 })
    return about(disk, disk?.generation, note)
  }
  if (captureMethods.some((name) => name === method)) {
    const copy = await simulated.findCapture(database, id)
    const note = (generation: number) =>
      simulated.putCapture(database, { id, location, generation, storedBytes: 0, consistency: 'off' })
    return about(copy, copy?.generation, note)
  }
  const vm = await simulated.findVm(database, id)
  return method === 'applyFirewall'
    ? about(vm, vm?.firewall_generation, (to) => simulated.setFirewall(database, id, to, vm!.firewall))
    : about(vm, vm?.generation, (to) => simulated.seeVm(database, id, to))
}

const about = (
  row: { is_removed: boolean } | undefined,
  highest = 0,
  note: KnownObject['note'],
): KnownObject => ({
  highest,
  isThere: row?.is_removed === false,
  isRemoved: row?.is_removed === true,
  note: async (generation) => row && note(generation),
})

/** Returns whether the engine would accept the call. A mutant that accepts everything would be too easy to detect. */
function isAccepted(
  method: ChangingMethod,
  { highest, isThere, isRemoved }: KnownObject,
  call: Call,
): boolean {
  if (call.generation < highest) return false
  if (method === 'ensureVm' || method === 'ensureDisk' || method === 'capture') return !isRemoved
  return isThere || ['removeVm', 'removeDisk', 'removeCapture'].includes(method)
}

type Fault = (
  subject: Subject,
  found: KnownObject,
  call: Call,
  act: (call: Call) => Promise<unknown>,
) => Promise<unknown>

const doesNothing: Fault = (_, found, call) => found.note(call.generation)
const returnsEarly: Fault = async ({ late }, _, call, act) => late.push(() => act(call))
const ignoresGenerations: Fault = (_, { highest }, call, act) =>
  act({ ...call, generation: Math.max(highest, call.generation) })

/** Adds the fault to one method; for `powerVm`, to one action. */
function withFault(method: ChangingMethod, fault: Fault, action?: string): Mutation {
  return (subject) => {
    const own = subject.engine[method].bind(subject.engine) as Change
    const changed: Change = async (...args) => {
      const call = args.at(-1) as Call
      const act = (changedCall: Call) => own(...args.slice(0, -1), changedCall)
      if (action !== undefined && args[1] !== action) return act(call)
      const found = await findKnown(subject, method, args[0].id)
      const isAffected = fault === ignoresGenerations || isAccepted(method, found, call)
      await (isAffected ? fault(subject, found, call, act) : act(call))
      // The result shows the actual state, without the effects of work that was not done.
      return method === 'ensureVm' ? subject.engine.inspectVm(args[0], call.signal) : undefined
    }
    return { [method]: changed }
  }
}

const everyChange = (what: string, fault: Fault): [string, Mutation][] => [
  ...[...vmMethods, ...diskMethods, ...captureMethods].map((method): [string, Mutation] => [
    `${method} ${what}`,
    withFault(method, fault),
  ]),
  ...actions.map((action): [string, Mutation] => [
    `powerVm ${action} ${what}`,
    withFault('powerVm', fault, action),
  ]),
]

/** Mutants that repeat their work when the call is repeated. */
const repeated: Record<string, Mutation> = {
  'powerVm reset repeats its work': (subject) => ({
    async powerVm(vm, action, call) {
      const { database, engine } = subject
      const isRepeated =
        action === 'reset' && (await simulated.findVm(database, vm.id))?.generation === call.generation
      if (!isRepeated) return engine.powerVm(vm, action, call)
      await simulated.setPower(database, vm.id, call.generation, 'on', 60_000, 'once more\n')
    },
  }),
  'attachDisk repeats its work': ({ database, engine }) => ({
    async attachDisk(vm, disk, call) {
      const before = (await simulated.findVm(database, vm.id))?.spec.disks as AttachedDisk[] | undefined
      await engine.attachDisk(vm, disk, call)
      await simulated.setDisks(database, vm.id, call.generation, [...(before ?? []), disk])
    },
  }),
  'growDisk repeats its work': ({ database, engine }) => ({
    async growDisk(disk: DiskSpec, call) {
      const isRepeated = (await simulated.findDisk(database, disk.id))?.generation === call.generation
      await engine.growDisk({ ...disk, sizeGib: disk.sizeGib + (isRepeated ? 1 : 0) }, call)
    },
  }),
}

const changeReports =
  (change: (host: HostReport) => Partial<HostReport>): Mutation =>
  ({ engine }) => ({
    async *inventory(signal, isDetailed) {
      for await (const host of engine.inventory(signal, isDetailed)) yield { ...host, ...change(host) }
    },
  })

const replaceEnsureVm =
  (
    ensureVm: (engine: Engine, ...args: Parameters<Engine['ensureVm']>) => ReturnType<Engine['ensureVm']>,
  ): Mutation =>
  ({ engine }) => ({ ensureVm: (spec, wanted, call) => ensureVm(engine, spec, wanted, call) })

/** Reports that a change of power is complete as soon as it starts; the next inventory shows the truth. */
function reportEarly(action: 'on' | 'shutdown', during: VmStatus['power'], end: VmStatus['power']): Mutation {
  return (subject) => {
    const { engine, publicAddress } = subject
    let isChanging = false
    let isReported = false
    const inventory = changeReports(({ vms }) => {
      const shown = isReported ? vms.map((vm) => ({ ...vm, power: during })) : vms
      isReported = false
      return { vms: shown }
    })
    return {
      ...inventory(subject),
      async powerVm(vm, asked, call) {
        await engine.powerVm(vm, asked, call)
        isChanging ||= asked === action
      },
      async ensureVm(spec, wanted, call) {
        isChanging ||= wanted.power === action
        return engine.ensureVm(spec, wanted, call)
      },
      async inspectVm(vm, signal) {
        const status = await engine.inspectVm(vm, signal)
        if (!status || !isChanging) return status
        isChanging = false
        isReported = true
        return { ...status, power: end, sshDestination: end === 'running' ? `ubuntu@${publicAddress}` : '' }
      },
    }
  }
}

/** Mutants whose reports do not match the state. */
const misreporting: Record<string, Mutation> = {
  'inventory leaves out summaries': ({ engine }) => ({
    async *inventory(signal, isDetailed) {
      for await (const host of engine.inventory(signal, isDetailed)) if (!host.isSummary) yield host
    },
  }),
  'inventory is inaccurate in summaries': changeReports(({ isSummary, gpus }) =>
    isSummary ? { gpus: gpus.slice(1) } : {},
  ),
  'ensureVm recreates a lost OS disk': replaceEnsureVm((engine, spec, wanted, call) =>
    engine.ensureVm({ ...spec, isNew: true }, wanted, call),
  ),
  'ensureVm applies no firewall': replaceEnsureVm((engine, spec, wanted, call) =>
    engine.ensureVm(spec, { ...wanted, firewall: { rules: [], generation: 0 } }, call),
  ),
  'ensureVm stores the generation of rules but does not apply them': replaceEnsureVm(
    (engine, spec, { firewall, power }, call) =>
      engine.ensureVm(spec, { firewall: { ...firewall, rules: [] }, power }, call),
  ),
  'ensureVm never powers on': replaceEnsureVm((engine, spec, wanted, call) =>
    engine.ensureVm(spec, { ...wanted, power: 'off' }, call),
  ),
  'ensureVm always powers on': replaceEnsureVm((engine, spec, wanted, call) =>
    engine.ensureVm(spec, { ...wanted, power: 'on' }, call),
  ),
  'ensureVm applies an older firewall': ({ engine, database }) => ({
    async ensureVm(spec, wanted, call) {
      await engine.ensureVm(spec, wanted, call)
      const values = [spec.id, JSON.stringify(wanted.firewall.rules)]
      await database.query({ text: 'UPDATE simulated_vms SET firewall = $2 WHERE id = $1', values })
      return engine.inspectVm(spec, call.signal)
    },
  }),
  'ensureVm powers off a running VM': ({ engine }) => ({
    async ensureVm(spec, wanted, call) {
      await engine.ensureVm(spec, wanted, call)
      if (wanted.power === 'off') await engine.powerVm(spec, 'off', call)
      return engine.inspectVm(spec, call.signal)
    },
  }),
  'ensureVm redefines a running VM': ({ engine, database }) => ({
    async ensureVm(spec, wanted, call) {
      await engine.ensureVm(spec, wanted, call)
      await simulated.setDisks(database, spec.id, call.generation, spec.disks)
      return engine.inspectVm(spec, call.signal)
    },
  }),
  'ensureVm returns the previous state': ({ engine }) => ({
    async ensureVm(spec, wanted, call) {
      const before = await engine.inspectVm(spec, call.signal)
      await engine.ensureVm(spec, wanted, call)
      return before
    },
  }),
  'inventory has no VMs': changeReports(() => ({ vms: [] })),
  'inventory has no disks': changeReports(() => ({ disks: [] })),
  'inventory sees no holder of a GPU': changeReports(({ gpus }) => ({
    gpus: gpus.map((gpu) => ({ ...gpu, holderVmId: null, isClean: true })),
  })),
  'inventory never sees a GPU clean': changeReports(({ gpus, vms }) => ({
    gpus: gpus.map((gpu) => ({ ...gpu, isClean: gpu.isClean && vms.length > 0 })),
  })),
  'inspectVm finds no VM': () => ({ inspectVm: async () => null }),
  'inspectVm reports too early that a VM runs': reportEarly('on', 'booting', 'running'),
  'inspectVm reports too early that a VM is off': reportEarly('shutdown', 'stopping', 'off'),
  'inventory has no copies': changeReports(() => ({ captures: [] })),
  'inspectCapture finds no copy': () => ({ inspectCapture: async () => null }),
  'removeCapture also removes VMs that were created from the copy': ({ engine, database }) => ({
    async removeCapture(capture, call) {
      await engine.removeCapture(capture, call)
      const text = `DELETE FROM simulated_vms WHERE spec -> 'image' -> 'source' ->> 'capture' = $1`
      await database.query({ text, values: [capture.id] })
    },
  }),
  'inspectDisk finds no disk': () => ({ inspectDisk: async () => null }),
  'serialLog is empty': ({ engine }) => ({
    async serialLog(vm, offset, signal) {
      await engine.serialLog(vm, offset, signal)
      return { content: '', nextOffset: 0 }
    },
  }),
  'serialLog ignores the offset': ({ engine }) => ({
    serialLog: (vm, _, signal) => engine.serialLog(vm, 0, signal),
  }),
  'watch never notifies': () => ({ watch: () => () => {} }),
  'watch never unsubscribes': ({ engine }) => ({
    watch(onChange) {
      engine.watch(onChange)
      return () => {}
    },
  }),
}

export const mutations: Record<string, Mutation> = {
  ...Object.fromEntries(everyChange('does nothing', doesNothing)),
  ...Object.fromEntries(everyChange('ignores generations', ignoresGenerations)),
  ...Object.fromEntries(
    // The call of `capture` itself only starts a copy.
    everyChange('returns before its work is done', returnsEarly).filter(
      ([name]) => !name.startsWith('capture '),
    ),
  ),
  ...repeated,
  ...misreporting,
}

const reads = ['inspectVm', 'inspectDisk', 'inspectCapture', 'serialLog']
/** The number of reads after which a change that was reported early is complete. */
const readsUntilDone = 4

/** Returns the engine with some methods replaced by those of the mutation. */
export function mutant(subject: Subject, mutation: Mutation): Engine {
  const changed = mutation(subject)
  let readCount = 0
  const afterRead = async () => {
    if (subject.late.length === 0 || ++readCount % readsUntilDone !== 0) return
    for (const act of subject.late.splice(0)) await act().catch(() => {})
  }
  return new Proxy(subject.engine, {
    get(engine, name: keyof Engine) {
      const method = (changed[name] ?? engine[name]).bind(engine as never) as (...args: unknown[]) => unknown
      if (!reads.includes(name)) return method
      return (...args: unknown[]) => {
        const response = method(...args)
        return response instanceof Promise ? response.finally(afterRead) : response
      }
    },
  })
}
