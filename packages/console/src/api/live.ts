import { type Event, isApiError, type RouteId } from '@slipway/sdk'
import { useEffect, useSyncExternalStore } from 'react'
import { client, onReadError, queryClient, refetchRoutes } from './client.ts'
import { isOffline, onConnectionChange } from './connection.ts'

const groups: RouteId[] = ['instanceGroupList', 'instanceGroupGet']
const quotas: RouteId[] = ['quotaList', 'organizationQuotaList']
/**
 * The routes to refetch after an event, by the event's resource type. An event of a VM or a disk does not refetch
 * the list of VMs or disks, because these lists are updated row by row.
 */
const routesByResourceType: Record<string, RouteId[]> = {
  vm: [
    'vmGet',
    ...quotas,
    'projectCosts',
    'suggestionList',
    'availabilityList',
    'capacityList',
    'firewallRuleList',
    'addressList',
    ...groups,
  ],
  disk: ['diskGet', 'vmGet', ...quotas, 'projectCosts', 'suggestionList'],
  snapshot: ['snapshotList', 'diskList', ...quotas, 'projectCosts'],
  custom_image: ['customImageList', ...quotas, 'projectCosts'],
  firewall_rule: ['firewallRuleList', ...quotas],
  network: ['networkList', 'subnetList'],
  subnet: ['networkList', 'subnetList'],
  address: ['addressList', ...quotas],
  access_key: ['accessKeyList'],
  member: ['memberList'],
  webhook: ['webhookList', 'webhookDeliveryList', 'webhookDeliveryGet'],
  budget: ['budgetGet'],
  project: ['projectList', ...quotas],
  image: ['imageList'],
  instance_group: [...groups, ...quotas],
  instance_template: ['instanceTemplateList'],
  capacity_request: ['capacityRequestList', 'capacityList'],
  ssh_key: ['sshKeyList'],
}
const routesOfEveryEvent: RouteId[] = [
  'organizationAlertList',
  'eventList',
  'operationList',
  'operationGet',
  'operationSteps',
]

/** `off`: no project is open. `refused`: the service refuses the event stream, so the page polls. */
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

/** Updates the page from the project's event stream, and polls while the stream is not connected. */
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
      // Data that was read before the stream connected may be outdated.
      refetchProject()
    },
    onReconnect: () => setState('reconnecting'),
  }
  while (!signal.aborted) {
    const restart = new AbortController()
    const stopListening = onConnectionProblem(() => restart.abort())
    try {
      const stream = client.events(
        { project_id: projectId },
        { ...options, signal: AbortSignal.any([signal, restart.signal]) },
      )
      for await (const event of stream) add(event)
    } catch (error) {
      if (signal.aborted) return
      // The cause of a refusal (payment method, rights) is rarely fixed soon. The page polls in the meantime.
      const isRefused = isApiError(error) && error.status >= 400 && error.status < 500
      setState(isRefused ? 'refused' : 'reconnecting')
      await new Promise((resolve) => setTimeout(resolve, isRefused ? 15_000 : 1_000))
    } finally {
      stopListening()
    }
  }
}

/** The stream may notice a lost connection late, so a failed read or an offline browser also reopens it. */
function onConnectionProblem(listener: () => void): () => void {
  const stopConnection = onConnectionChange(() => isOffline() && listener())
  const stopReads = onReadError((error) => {
    if (isApiError(error) && error.code === 'connection_failed') listener()
  })
  return () => {
    stopConnection()
    stopReads()
  }
}

const refetchProject = () => void refetchRoutes((route) => !String(route).startsWith('admin'))

/** Collects events for a short time, so that each affected route is refetched only once. */
function newBatch(projectId: string) {
  const pauseMs = 150
  let events: Event[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  // Batches read their rows in order, so that a late response never overwrites newer rows.
  let listUpdates = Promise.resolve()
  const flush = () => {
    timer = undefined
    const stale = new Set<RouteId>(routesOfEveryEvent)
    for (const event of events)
      for (const id of routesByResourceType[event.resource_type] ?? []) stale.add(id)
    const idsOf = (type: string) => [
      ...new Set(events.filter((event) => event.resource_type === type).map((event) => event.resource_id)),
    ]
    const [vmIds, diskIds] = [idsOf('vm'), idsOf('disk')]
    listUpdates = listUpdates.then(async () => {
      await Promise.all([updateList('vmList', projectId, vmIds), updateList('diskList', projectId, diskIds)])
    })
    // A VM event can mean that a disk was attached or detached, which also changes the disk.
    if (events.some((event) => event.resource_type === 'vm')) stale.add('diskGet')
    events = []
    void refetchRoutes((route) => stale.has(route as RouteId))
  }
  return {
    add(event: Event) {
      events.push(event)
      timer ??= setTimeout(flush, pauseMs)
    },
    drop: () => clearTimeout(timer),
  }
}

/** Reads only the changed rows and merges them into the list, which can have thousands of rows. */
async function updateList(id: 'vmList' | 'diskList', projectId: string, ids: string[]): Promise<void> {
  if (ids.length === 0) return
  const lists = queryClient.getQueryCache().findAll({ queryKey: [id] })
  if (lists.length === 0) return
  // A running fetch of the list may be older than these events and would overwrite them, so wait for it.
  const running = lists.filter(({ state }) => state.fetchStatus === 'fetching')
  await Promise.allSettled(running.map(({ promise }) => promise))
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
