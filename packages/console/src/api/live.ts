import { type Event, isApiError, type RouteId } from '@slipway/sdk'
import { useEffect, useSyncExternalStore } from 'react'
import { client, onReadError, queryClient, readAgain } from './client.ts'
import { isOffline, onLineChange } from './line.ts'

const quotas: RouteId[] = ['quotaList', 'organizationQuotaList']
/** An event of a resource type makes these reads stale. Lists of VMs and disks are updated row by row instead. */
const touchedBy: Record<string, RouteId[]> = {
  vm: ['vmGet', ...quotas, 'projectCosts', 'availabilityList', 'capacityList', 'firewallRuleList'],
  disk: ['diskGet', 'vmGet', ...quotas, 'projectCosts'],
  firewall_rule: ['firewallRuleList', ...quotas],
  network: ['networkList', 'subnetList'],
  subnet: ['networkList', 'subnetList'],
  access_key: ['accessKeyList'],
  member: ['memberList'],
  webhook: ['webhookList', 'webhookDeliveryList'],
  budget: ['budgetGet'],
  project: ['projectList'],
  image: ['imageList'],
}
const touchedByAll: RouteId[] = [
  'organizationAlertList',
  'eventList',
  'operationList',
  'operationGet',
  'operationSteps',
]

/** Off where no project is followed; refused where its stream is closed to the caller, and the page polls. */
type LiveState = 'connecting' | 'live' | 'reconnecting' | 'refused' | 'off'
let state: LiveState = 'connecting'
const listeners = new Set<() => void>()
function setState(next: LiveState): void {
  if (state === next) return
  state = next
  for (const listener of listeners) listener()
}
export const useLiveState = (): LiveState =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => state,
  )

/** Keeps everything on the page true to the project's event stream; polls while there is none. */
export function useLiveProject(projectId: string, isEnabled: boolean): void {
  useEffect(() => {
    if (!projectId || !isEnabled) return setState('off')
    const stop = new AbortController()
    const batch = newBatch(projectId)
    const poll = setInterval(() => {
      if (state !== 'live' && !document.hidden) refetchProject()
    }, 5_000)
    setState('connecting')
    follow(projectId, stop.signal, batch.add)
    return () => {
      stop.abort()
      batch.drop()
      clearInterval(poll)
    }
  }, [projectId, isEnabled])
}

async function follow(projectId: string, signal: AbortSignal, add: (event: Event) => void): Promise<void> {
  const options = {
    onConnect: () => {
      setState('live')
      // The stream tells what happens from its start on; what was read before that may be older.
      refetchProject()
    },
    onReconnect: () => setState('reconnecting'),
  }
  while (!signal.aborted) {
    const doubt = new AbortController()
    const stopDoubting = onDoubt(() => doubt.abort())
    try {
      const stream = client.events(
        { project_id: projectId },
        { ...options, signal: AbortSignal.any([signal, doubt.signal]) },
      )
      for await (const event of stream) add(event)
    } catch (error) {
      if (signal.aborted) return
      // A refusal may end by itself (payment method, rights), but not soon. Polling covers the pause.
      const isRefused = isApiError(error) && error.status >= 400 && error.status < 500
      setState(isRefused ? 'refused' : 'reconnecting')
      await new Promise((resolve) => setTimeout(resolve, isRefused ? 15_000 : 1_000))
    } finally {
      stopDoubting()
    }
  }
}

/** A dead line can stay silent for long: what else shows that it is dead is reason enough to open the stream anew. */
function onDoubt(listener: () => void): () => void {
  const stopLine = onLineChange(() => isOffline() && listener())
  const stopReads = onReadError((error) => {
    if (isApiError(error) && error.code === 'connection_failed') listener()
  })
  return () => {
    stopLine()
    stopReads()
  }
}

const refetchProject = () => void readAgain((route) => !String(route).startsWith('admin'))

/** Events often come in bursts: what they touch is read once for all of them. */
function newBatch(projectId: string) {
  const pauseMs = 150
  let events: Event[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  // Rows are read one batch after another: an earlier answer that comes last would bring back what was.
  let updated = Promise.resolve()
  const flush = () => {
    timer = undefined
    const stale = new Set<RouteId>(touchedByAll)
    for (const event of events) for (const id of touchedBy[event.resource_type] ?? []) stale.add(id)
    const idsOf = (type: string) => [
      ...new Set(events.filter((event) => event.resource_type === type).map((event) => event.resource_id)),
    ]
    const [vmIds, diskIds] = [idsOf('vm'), idsOf('disk')]
    updated = updated.then(async () => {
      await Promise.all([updateList('vmList', projectId, vmIds), updateList('diskList', projectId, diskIds)])
    })
    // An attachment changes the disks' side too.
    if (events.some((event) => event.resource_type === 'vm')) stale.add('diskGet')
    events = []
    void readAgain((route) => stale.has(route as RouteId))
  }
  return {
    add(event: Event) {
      events.push(event)
      timer ??= setTimeout(flush, pauseMs)
    },
    drop: () => clearTimeout(timer),
  }
}

/** Reads the rows that changed and puts them into the list; a list of thousands is never read again as a whole. */
async function updateList(id: 'vmList' | 'diskList', projectId: string, ids: string[]): Promise<void> {
  if (ids.length === 0) return
  const lists = queryClient.getQueryCache().findAll({ queryKey: [id] })
  if (lists.length === 0) return
  // A list that is being read may be older than these events, and would take the place of what they bring.
  const underWay = lists.filter(({ state }) => state.fetchStatus === 'fetching')
  await Promise.allSettled(underWay.map(({ promise }) => promise))
  if (ids.length > 200) {
    await queryClient.invalidateQueries({ queryKey: [id] })
    return
  }
  type Row = { id: string }
  let fresh: Row[]
  try {
    const page = await client.call(id, {
      params: { project_id: projectId },
      query: { ids: ids.join(','), limit: 500 },
    })
    fresh = page.items
  } catch {
    await queryClient.invalidateQueries({ queryKey: [id] })
    return
  }
  const changed = new Set(ids)
  const byId = new Map(fresh.map((row) => [row.id, row]))
  for (const { queryKey } of lists) {
    const { project_id, all, ...filters } = queryKey[1] as { project_id?: string; all?: boolean }
    if (project_id !== projectId || !all) continue
    if (Object.keys(filters).length > 0) {
      await queryClient.invalidateQueries({ queryKey })
      continue
    }
    queryClient.setQueryData<Row[]>(queryKey, (rows) => {
      if (!rows) return rows
      const known = new Set(rows.map((row) => row.id))
      const kept = rows.filter((row) => !changed.has(row.id) || byId.has(row.id))
      const added = fresh.filter((row) => !known.has(row.id))
      return [...added, ...kept.map((row) => byId.get(row.id) ?? row)]
    })
  }
}
