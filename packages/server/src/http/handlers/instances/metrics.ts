import {
  coarseSampleSeconds,
  gpuMetricNames,
  hostMetricNames,
  type MetricRange as MetricRangeView,
  maxMetricPoints,
  maxMetricVms,
  sampleSeconds,
} from '@slipway/contract'
import { Failure } from '../../../domain/failure.ts'
import {
  type MetricRange,
  pointsIn,
  type Sample,
  sampleOf,
  seriesOf,
  unpackChunk,
} from '../../../domain/guest/samples.ts'
import { groupBy } from '../../../domain/lists.ts'
import type { Queryable } from '../../../postgres/database.ts'
import { readServiceTime } from '../../../postgres/ping.ts'
import {
  listChunks,
  listLatestSamples,
  listMeasuredVms,
  listSamples,
  type MeasuredVm,
} from '../../../store/metrics/samples.ts'
import { metricsText } from '../../../views/metrics.ts'
import { type Handlers, RawResponse, requireCaller } from '../../context.ts'
import { choiceList, idList } from '../../filters.ts'
import { invalidParameter } from '../../validation.ts'

const dayS = 86_400
const defaultRangeS = 3_600

interface RangeQuery {
  names?: string
  start?: string
  end?: string
  step?: number
}

/**
 * Returns the time range and the step that the query requests. One-minute samples are kept for only a day, so
 * older ranges use coarser samples.
 */
async function rangeOf(db: Queryable, query: RangeQuery): Promise<MetricRange> {
  const now = Math.floor((await readServiceTime(db)).getTime() / 1000)
  const end = query.end === undefined ? now : Math.floor(Date.parse(query.end) / 1000)
  const start = query.start === undefined ? end - defaultRangeS : Math.floor(Date.parse(query.start) / 1000)
  if (start > end) throw invalidParameter('start', 'must not be later than end')
  const isRecent = start >= now - dayS
  const step = query.step ?? (isRecent ? sampleSeconds : coarseSampleSeconds)
  const range = { start, end, step }
  if (pointsIn(range) > maxMetricPoints)
    throw invalidParameter(
      'step',
      `is too small: the range would have ${pointsIn(range)} points, and at most ${maxMetricPoints} are returned`,
    )
  return range
}

async function readRange(db: Queryable, vms: MeasuredVm[], query: RangeQuery): Promise<MetricRangeView> {
  const names = choiceList('names', query.names, [...hostMetricNames, ...gpuMetricNames])
  const range = await rangeOf(db, query)
  const ids = vms.map(({ id }) => id)
  const [from, to] = [new Date(range.start * 1000), new Date(range.end * 1000)]
  const isFine = range.step < coarseSampleSeconds
  const [chunks, recent] = await Promise.all([
    listChunks(db, ids, isFine ? sampleSeconds : coarseSampleSeconds, from, to),
    listSamples(db, ids, from, to),
  ])
  const chunksOfVm = groupBy(chunks, ({ vm_id }) => vm_id)
  const recentOfVm = groupBy(recent, ({ vm_id }) => vm_id)
  const items = vms.flatMap((vm) => {
    const samples: Sample[] = [
      ...(chunksOfVm.get(vm.id) ?? []).flatMap(({ data }) => unpackChunk(data)),
      ...(recentOfVm.get(vm.id) ?? []).map(sampleOf),
    ]
    return seriesOf({ vmId: vm.id, name: vm.name, gpus: vm.gpus ?? [] }, samples, names, range)
  })
  return { items, step_seconds: range.step }
}

export const metricHandlers = {
  async vmMetrics({ tx, project, params, query }) {
    const vms = await listMeasuredVms(tx, project.projectId, [params.vm_id])
    if (vms.length === 0) throw new Failure('not_found', 'There is no such VM.')
    return readRange(tx, vms, query)
  },

  async projectMetrics({ tx, project, query }) {
    const ids = idList('vm_ids', query.vm_ids) ?? []
    if (ids.length === 0 || ids.length > maxMetricVms)
      throw invalidParameter('vm_ids', `must have 1 to ${maxMetricVms} ids`)
    return readRange(tx, await listMeasuredVms(tx, project.projectId, ids), query)
  },

  async projectMetricsScrape(context) {
    const { tx, project, services, reply, request } = context
    services.scrapes.take(requireCaller(context).key, reply)
    const isOpenMetrics = (request.headers.accept ?? '').includes('application/openmetrics-text')
    const text = metricsText(await listLatestSamples(tx, project.projectId), isOpenMetrics)
    const type = isOpenMetrics
      ? 'application/openmetrics-text; version=1.0.0; charset=utf-8'
      : 'text/plain; version=0.0.4; charset=utf-8'
    return new RawResponse(type, text)
  },
} satisfies Partial<Handlers>
