import type { ListItem } from '@slipway/sdk'
import { ageColumn, idColumn, type Resource } from '../../core/resource.ts'

export type CapacityRequest = ListItem<'capacityRequestList'>

/** Returns the name of the VM or group to create, or the id of the VM to start or replace. */
function targetName({ request }: CapacityRequest): string {
  const created = (request.vm ?? request.instance_group) as { name: string } | undefined
  return created?.name ?? String(request.start_vm_id ?? request.replace_vm_id)
}

/** Formats a time for display, without seconds. */
const shortTime = (at: string) => (at === '' ? '' : `${at.slice(0, 16).replace('T', ' ')} UTC`)

/** Returns when a request will probably be granted, and how reliable that estimate is. */
export function likelyTime({ estimate }: CapacityRequest): string {
  if (estimate.basis === 'none') return ''
  return estimate.basis === 'expiries'
    ? shortTime(estimate.latest_at)
    : `about ${shortTime(estimate.likely_at)}`
}

export const capacityRequests: Resource<CapacityRequest> = {
  noun: 'queue',
  title: 'capacity request',
  example: 'train-7',
  argumentName: 'request',
  reference: 'id of the capacity request, or name of the VM or group that it creates',
  columns: [
    { name: 'name', value: targetName },
    { name: 'state', value: (request) => request.state, isState: true },
    { name: 'gpus', value: (request) => request.gpus_wanted, align: 'right' },
    { name: 'position', value: (request) => request.position ?? '', align: 'right' },
    { name: 'likely', value: likelyTime },
    { name: 'blocked_by', value: (request) => request.blocked_by },
    { name: 'location', value: (request) => request.location, hideOrder: 2 },
    ageColumn,
    idColumn,
  ],
  fields: (request) => [
    [request.request.instance_group ? 'group' : 'VM', targetName(request)],
    ['state', request.state],
    ['when available', request.on_available],
    ['GPUs', `${request.gpus_held} of ${request.gpus_wanted} held`],
    ['position', String(request.position ?? '')],
    ['blocked by', request.blocked_by],
    ['earliest', shortTime(request.estimate.earliest_at)],
    ['likely', shortTime(request.estimate.likely_at)],
    ['latest', shortTime(request.estimate.latest_at)],
    [
      'estimates met',
      request.estimate.hit_rate === null ? '' : `${Math.round(request.estimate.hit_rate * 100)}%`,
    ],
    ['location', request.location],
    ['held until', shortTime(request.held_until)],
    ['waits until', shortTime(request.until)],
    ['error', request.error?.message ?? ''],
    ['operation', request.operation_id],
    ['id', request.id],
  ],
  route: 'capacityRequestList',
  list: async (cli) => cli.client.collect('capacityRequestList', { project_id: await cli.project() }),
  named: (request) => ({ id: request.id, name: targetName(request) }),
}
