import type { MetricSeries, Vm } from '@slipway/sdk'
import { keepPreviousData, useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { client } from '../api/client.ts'
import { useQuery } from '../api/use-query.ts'
import { readNow } from '../lib/clock.ts'

type Value = number | null

const step = 300
const hourMs = 3_600_000
/** The API returns the metrics of at most this many VMs at a time. */
const vmsPerRequest = 100
const gatherMs = 30

interface PendingRead {
  vmId: string
  resolve: (values: Value[]) => void
  reject: (error: unknown) => void
}
const pendingByProject = new Map<string, PendingRead[]>()

/** Reads the GPU usage of a VM in the last hour. Concurrent reads of several VMs share a request. */
function readGpuUse(projectId: string, vmId: string): Promise<Value[]> {
  return new Promise((resolve, reject) => {
    const gathered = pendingByProject.get(projectId)
    if (gathered) return void gathered.push({ vmId, resolve, reject })
    const wanted = [{ vmId, resolve, reject }]
    pendingByProject.set(projectId, wanted)
    setTimeout(() => {
      pendingByProject.delete(projectId)
      for (let at = 0; at < wanted.length; at += vmsPerRequest)
        void readBatch(projectId, wanted.slice(at, at + vmsPerRequest))
    }, gatherMs)
  })
}

async function readBatch(projectId: string, wanted: PendingRead[]): Promise<void> {
  try {
    const { items } = await client.projectMetrics({
      project_id: projectId,
      // The list and a row can read a VM at the same moment.
      vm_ids: [...new Set(wanted.map(({ vmId }) => vmId))].join(','),
      names: 'DCGM_FI_DEV_GPU_UTIL',
      start: new Date(readNow() - hourMs).toISOString(),
      step,
    })
    for (const { vmId, resolve } of wanted)
      resolve(meanOf(items.filter(({ labels }) => labels.vm_id === vmId)))
  } catch (error) {
    for (const { reject } of wanted) reject(error)
  }
}

/** Returns the mean of all GPUs at each time; null at a time without values. */
const meanOf = (gpus: MetricSeries[]): Value[] =>
  (gpus[0]?.points ?? []).map((_, index) => {
    const known = gpus.flatMap(({ points }) => points[index]?.[1] ?? [])
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length
  })

const timing = { staleTime: 60_000, refetchInterval: 60_000, refetchOnWindowFocus: false }

const gpuUseQuery = ({ id, project_id }: Vm) => ({
  ...timing,
  queryKey: ['projectMetrics', { vm_id: id }],
  queryFn: () => readGpuUse(project_id, id),
})

const isRunning = ({ state }: Vm) => state === 'STATE_RUNNING'
const isKnown = (values: Value[]) => values.some((value) => value !== null)

/**
 * Returns a function that returns whether a VM may have GPU usage to show; undefined if no VM has. One request reads the
 * first running VMs; each of the others is read when its row is shown.
 */
export function useHasGpuUse(vms: Vm[]): ((vm: Vm) => boolean) | undefined {
  const queries = useQueryClient()
  const first = useMemo(() => vms.filter(isRunning).slice(0, vmsPerRequest), [vms])
  const ids = first.map(({ id }) => id)
  const { data: without } = useQuery({
    ...timing,
    queryKey: ['projectMetrics', { vm_ids: ids }],
    queryFn: async () => {
      const uses = await Promise.all(first.map((vm) => readGpuUse(vm.project_id, vm.id)))
      // The rows of these VMs need no requests of their own.
      for (const [index, vm] of first.entries()) queries.setQueryData(gpuUseQuery(vm).queryKey, uses[index])
      return ids.filter((_, index) => !isKnown(uses[index] ?? []))
    },
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
  })
  return useMemo(() => {
    if (!without || without.length === ids.length) return undefined
    const hidden = new Set(without)
    return (vm) => isRunning(vm) && !hidden.has(vm.id)
  }, [without, ids.length])
}

/** The GPU usage of the last hour as a line, and its latest value. */
export function GpuUse({ vm }: { vm: Vm }) {
  const use = useQuery({ ...gpuUseQuery(vm), enabled: isRunning(vm) })
  const values = isRunning(vm) ? (use.data ?? []) : []
  const latest = values.findLast((value) => value !== null)
  if (latest === undefined || latest === null) return <span className="text-ink-muted">–</span>
  return (
    <span className="inline-flex items-center gap-1.5 align-middle whitespace-nowrap">
      <Sparkline values={values} />
      <span className="figures">{Math.round(latest)}%</span>
    </span>
  )
}

const width = 36
const height = 16

function Sparkline({ values }: { values: Value[] }) {
  const x = (index: number) => 1 + (index / Math.max(1, values.length - 1)) * (width - 2)
  const y = (value: number) => height - 1.5 - (Math.min(100, value) / 100) * (height - 3)
  return (
    <svg width={width} height={height} className="shrink-0 rounded-[2px] bg-sunken" aria-hidden="true">
      {runsOf(values).map(({ from, run }) => (
        <polyline
          key={from}
          // Draw a single value as a dot.
          points={[...run, ...(run.length === 1 ? run : [])]
            .map(
              (value, index) =>
                `${x(from + Math.min(index, run.length - 1)).toFixed(1)},${y(value).toFixed(1)}`,
            )
            .join(' ')}
          fill="none"
          stroke="var(--accent)"
          strokeWidth="1.5"
          strokeLinecap="round"
          strokeLinejoin="round"
        />
      ))}
    </svg>
  )
}

/** Splits a line at its gaps. */
function runsOf(values: Value[]): { from: number; run: number[] }[] {
  const runs: { from: number; run: number[] }[] = []
  values.forEach((value, index) => {
    if (value === null) return
    const last = runs.at(-1)
    if (last && last.from + last.run.length === index) last.run.push(value)
    else runs.push({ from: index, run: [value] })
  })
  return runs
}
