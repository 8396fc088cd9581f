import { setTimeout as delay } from 'node:timers/promises'
import { openStream, type StreamClient } from '@slipway/testing/event-stream.ts'
import type { Cluster } from './cluster.ts'
import type { History } from './history.ts'
import { checkGpus, type GpuSample } from './history-checks.ts'

const reconnectMs = 200
const checkIntervalMs = 400
/** Streams are closed after this time, because the stream of a process that hangs stays open without events. */
const longestStreamMs = 5_000

/** Reads a project's events as they arrive, from any available API process, continuing from the last position. */
export class StreamReader {
  readonly #earlierIds: string[] = []
  #current: StreamClient | undefined
  #position: string | undefined
  #isOver = false
  #running: Promise<void> | undefined

  start(cluster: Cluster, projectId: string, token: string, fromPosition: number): void {
    this.#position = String(fromPosition)
    this.#running = this.#read(cluster, projectId, token)
  }

  /** The ids of all events, in the order of arrival. */
  get eventIds(): string[] {
    return [...this.#earlierIds, ...(this.#current?.events ?? []).map(({ id }) => id)]
  }

  async stop(): Promise<void> {
    this.#isOver = true
    this.#current?.close()
    await this.#running
  }

  async #read(cluster: Cluster, projectId: string, token: string): Promise<void> {
    for (let turn = 0; !this.#isOver; turn++) {
      const { apiUrls } = cluster
      const url = apiUrls[turn % apiUrls.length]!
      await this.#readOne(url, projectId, token).catch(() => {})
      await delay(reconnectMs)
    }
  }

  async #readOne(url: string, projectId: string, token: string): Promise<void> {
    const opening = openStream(url, projectId, { token, lastEventId: this.#position! })
    const stream = await Promise.race([opening, delay(longestStreamMs, undefined, { ref: false })])
    if (!stream) return void opening.then((late) => late.close()).catch(() => {})
    this.#current = stream
    const closeTimer = setTimeout(() => stream.close(), longestStreamMs)
    await stream.closed
    clearTimeout(closeTimer)
    this.#current = undefined
    this.#earlierIds.push(...stream.events.map(({ id }) => id))
    this.#position = stream.ids.at(-1) ?? this.#position
  }
}

/** Checks continuously that no resource is duplicated at the engines. */
export class EngineWatch {
  /** The number of checks that found GPUs with VMs. */
  samples = 0
  #isOver = false
  #running: Promise<void> | undefined

  start(cluster: Cluster, history: History): void {
    this.#running = this.#watch(cluster, history)
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  async #watch(cluster: Cluster, history: History): Promise<void> {
    while (!this.#isOver) {
      const gpus = await cluster.sql<GpuSample>(heldGpus)
      if (gpus.length > 0) this.samples++
      for (const broken of checkGpus(gpus)) history.violation(broken)
      for (const { what, vms } of await cluster.sql<{ what: string; vms: string }>(duplicates))
        history.violation(`${what} has several VMs at the same time: ${vms}`)
      await delay(checkIntervalMs)
    }
  }
}

/** Selects the GPUs of VMs that are on. */
const heldGpus = `
  SELECT concat_ws(' ', v.location, v.host, gpu) AS gpu, v.id AS "vmId" FROM simulated_vms v, unnest(v.gpus) gpu
  WHERE NOT v.is_removed AND NOT (v.power = 'off' OR v.power = 'shutdown' AND v.ready_at <= slipway_now())`

/** Selects public addresses and names that several resources have. */
const duplicates = `
  SELECT what, string_agg(id::text, ', ' ORDER BY id) AS vms FROM (
    SELECT v.id, 'address ' || (v.spec -> 'network' ->> 'publicAddress') AS what
    FROM simulated_vms v WHERE NOT v.is_removed AND v.spec -> 'network' ->> 'publicAddress' <> ''
    UNION ALL
    SELECT id, concat_ws(' ', 'VM name', project_id, name) FROM vms WHERE deleted_at IS NULL
    UNION ALL
    SELECT id, concat_ws(' ', 'disk name', project_id, name) FROM disks
    UNION ALL
    SELECT id, concat_ws(' ', 'rule name', project_id, name) FROM firewall_rules
  ) held GROUP BY what HAVING count(*) > 1`
