import { setTimeout as delay } from 'node:timers/promises'
import { Doorbell } from '../domain/doorbell.ts'
import type { Tx } from '../store/database.ts'
import {
  findStrangers,
  listExpiredVms,
  listVmsToWarn,
  lockExpiredVm,
  markWarned,
  pruneExpired,
} from '../store/drift.ts'
import { emitEvent, type NewEvent, stampEvents } from '../store/events.ts'
import { settleDrainedHosts } from '../store/fleet.ts'
import { pingDatabase } from '../store/meta.ts'
import { pruneOperations } from '../store/operations.ts'
import { freeCleanGpus, listQuarantinedGpus } from '../store/placement.ts'
import { simulated } from '../store/simulated.ts'
import { time } from '../store/time.ts'
import { findAnyVm, lockVm } from '../store/vms.ts'
import type { Requester } from './admission.ts'
import { runBilling } from './billing.ts'
import { EngineError, type HostReport } from './engine.ts'
import { applyFirewalls } from './firewalls.ts'
import { applyHostReports, markLostHosts } from './host-reports.ts'
import { Loops } from './loops.ts'
import type { Workshop } from './operation.ts'
import { reconcileLostVms, reconcileVms } from './reconcile-vms.ts'
import { admitVmDelete } from './vm-delete.ts'
import { admitVmStop } from './vm-stop.ts'

const tickMs = 1_000
const reportMs = 2_000
/** How long a host may be silent. */
const silenceMs = 30_000
const pruneMs = 60_000
const billingMs = 30_000
const hostsPerBatch = 500
const callMs = 60_000
const batch = 1_000
const warnAheadS = 600
/** An object that no row ever knew may belong to a creation that we have not read yet: it gets an hour. */
const strangerMs = 3_600_000
/** At most a tenth of the time goes into looking, however large the fleet; stamping does not rest: somebody waits. */
const restFactor = 9
const stampSoonMs = 25

/**
 * Compares what should be with what is, and acts. Takes no input and may run at any time, in any number of processes;
 * an engine's hint only makes it look sooner.
 */
export class Reconciler {
  readonly #workshop: Workshop
  readonly #loops: Loops
  readonly #strangersSince = new Map<string, number>()
  readonly #stamping = new Doorbell(() => stampEvents(this.#workshop))
  #stampTimer: NodeJS.Timeout | undefined

  constructor(workshop: Workshop) {
    this.#workshop = workshop
    this.#loops = new Loops((err) => workshop.log.warn({ err }, 'reconciler failed'))
  }

  start(): void {
    this.#loops.every(reportMs, () => this.reports(), restFactor)
    this.#loops.every(tickMs, () => this.firewalls(), restFactor)
    this.#loops.every(tickMs, () => this.expiry(), restFactor)
    this.#loops.every(tickMs, () => this.stamp())
    this.#loops.every(pruneMs, () => this.prune(), restFactor)
    this.#loops.every(billingMs, () => this.billing(), restFactor)
    // A VM that changed by itself ends somebody's waiting, or has crashed.
    const { engines, signals } = this.#workshop
    const unsubscribe = [...engines.values()].map((engine) => engine.watch(() => signals.send('operations')))
    unsubscribe.push(signals.on('events', () => this.#stampSoon()))
    for (const each of unsubscribe) this.#loops.stopping.addEventListener('abort', each)
  }

  async stop(): Promise<void> {
    const stopped = this.#loops.stop()
    clearTimeout(this.#stampTimer)
    await Promise.race([stopped, delay(3_000)])
  }

  /** Everything once, in order: for tests and for whoever cannot wait. */
  async once(): Promise<void> {
    await this.reports()
    await this.firewalls()
    await this.expiry()
    await this.prune()
    await this.billing()
  }

  /** Hosts, GPUs and VMs as the engines report them. */
  async reports(): Promise<void> {
    const { engines, config } = this.#workshop
    const begunAt = await pingDatabase(this.#workshop.database)
    for (const [location, engine] of engines) {
      const engineName = config.locations.find(({ name }) => name === location)?.engine ?? 'simulated'
      const inspectedAt = await pingDatabase(this.#workshop.database)
      let pending: HostReport[] = []
      const flush = async () => {
        await applyHostReports(this.#workshop.database, location, engineName, pending)
        await reconcileVms(this.#workshop, location, pending)
        await this.#freeGpus(location, pending, inspectedAt)
        await this.#removeStrangers(location, pending, inspectedAt)
        pending = []
      }
      try {
        for await (const report of engine.inventory(this.#limit())) {
          pending.push(report)
          if (pending.length >= hostsPerBatch) await flush()
        }
        await flush()
      } catch (error) {
        // One location's engine being away is no reason to neglect the others.
        this.#workshop.log.warn({ err: error, location }, 'location not reconciled')
      }
    }
    await markLostHosts(this.#workshop.database, silenceMs, begunAt)
    await reconcileLostVms(this.#workshop)
    await this.#workshop.database.transaction((tx) => settleDrainedHosts(tx))
  }

  async firewalls(): Promise<void> {
    await applyFirewalls(this.#workshop, null, this.#limit())
  }

  /** VMs whose time is up are stopped or deleted; ten minutes before, their owners are told. */
  async expiry(): Promise<void> {
    const { database, config } = this.#workshop
    for (const { id } of await listVmsToWarn(database, warnAheadS, batch))
      await database.transaction(async (tx) => {
        const vm = await findAnyVm(tx, id)
        if (vm && (await markWarned(tx, id)))
          await this.#tell(tx, {
            type: 'vm.expiring',
            resourceType: 'vm',
            resourceId: id,
            projectId: vm.project_id,
            data: { name: vm.name, expires_at: time(vm.expires_at), on_expiry: vm.on_expiry },
          })
      })
    for (const { id, project_id, on_expiry } of await listExpiredVms(database, batch))
      await database
        .transaction(async (tx) => {
          const vm = (await lockExpiredVm(tx, id)) && (await lockVm(tx, project_id, id))
          if (!vm) return
          const by = this.#system(tx, project_id)
          const admit = on_expiry === 'delete' ? admitVmDelete : admitVmStop
          await admit(tx, by, vm, config.operations.vmDeadlineS)
        })
        .catch((error) => this.#workshop.log.info({ err: error, vm: id }, 'expiry waits'))
  }

  /** Gives new events their positions. */
  stamp(): Promise<void> {
    return this.#stamping.ring()
  }

  /** Events come in twos and threes: they get their positions together. */
  #stampSoon(): void {
    this.#stampTimer ??= setTimeout(() => {
      this.#stampTimer = undefined
      this.stamp().catch(() => {})
    }, stampSoonMs)
  }

  /** Closes days and months, watches budgets and cards, tells the payment provider. */
  async billing(): Promise<void> {
    await runBilling(this.#workshop)
  }

  async prune(): Promise<void> {
    const { database } = this.#workshop
    await pruneExpired(database, batch)
    await pruneOperations(database, batch)
    await simulated.prune(database, batch)
  }

  #tell(tx: Tx, event: Omit<NewEvent, 'actor' | 'requestId'>): Promise<void> {
    tx.afterCommit(() => this.#workshop.signals.send('events'))
    return emitEvent(tx, { ...event, actor: 'system', requestId: '' })
  }

  #system(tx: Tx, projectId: string): Requester {
    const { signals } = this.#workshop
    return {
      ...{ projectId, actor: 'system', requestId: '', signals },
      audit: (event) => this.#tell(tx, event),
      noteEvent: () => tx.afterCommit(() => signals.send('events')),
    }
  }

  async #freeGpus(location: string, reports: HostReport[], inspectedAt: Date): Promise<void> {
    const clean = new Set(
      reports.flatMap(({ name, gpus }) =>
        gpus
          .filter((gpu) => gpu.isClean && gpu.holderVmId === null)
          .map((gpu) => `${name} ${gpu.pciAddress}`),
      ),
    )
    const quarantined = await listQuarantinedGpus(this.#workshop.database, location)
    const ids = quarantined
      .filter(({ host, pci_address }) => clean.has(`${host} ${pci_address}`))
      .map(({ id }) => id)
    await freeCleanGpus(this.#workshop.database, ids, inspectedAt)
  }

  /** Engine objects of a deleted id go at once; those that no row ever knew, after an hour. */
  async #removeStrangers(location: string, reports: HostReport[], inspectedAt: Date): Promise<void> {
    const engine = this.#workshop.engines.get(location)!
    const vms = new Map(
      reports.flatMap((report) => report.vms.map((vm) => [vm.id, { ...vm, host: report.name }])),
    )
    const disks = new Map(
      reports.flatMap((report) => report.disks.map((disk) => [disk.id, { ...disk, host: report.name }])),
    )
    const strangers = await findStrangers(this.#workshop.database, [...vms.keys(), ...disks.keys()])
    const now = inspectedAt.getTime()
    for (const { id, newest_generation } of strangers) {
      const since = this.#strangersSince.get(id) ?? now
      this.#strangersSince.set(id, since)
      if (newest_generation === null && now - since < strangerMs) continue
      const vm = vms.get(id)
      const object = vm ?? disks.get(id)!
      const generation = Math.max(newest_generation ?? 0, object.generation)
      this.#workshop.log.warn({ id, location }, 'removing what no record knows')
      const call = { generation, signal: this.#limit() }
      try {
        if (vm) await engine.removeVm({ id, host: object.host }, call)
        else await engine.removeDisk({ id, host: object.host }, call)
        this.#strangersSince.delete(id)
      } catch (error) {
        if (!(error instanceof EngineError)) throw error
        this.#workshop.log.warn({ err: error, id, location }, 'stranger not removed')
      }
    }
  }

  #limit(): AbortSignal {
    return AbortSignal.any([this.#loops.stopping, AbortSignal.timeout(callMs)])
  }
}
