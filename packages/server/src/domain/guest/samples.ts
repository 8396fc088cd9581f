import {
  coarseSampleSeconds,
  gpuMetricNames,
  hostMetricNames,
  type MetricSeries,
  sampleSeconds,
  vmMetrics,
} from '@slipway/contract'
import { groupBy } from '../lists.ts'
import type { Value } from './report.ts'

/** One measurement of a VM. `at` is in seconds since 1970; values are in the order of the contract's tables. */
export interface Sample {
  at: number
  host: Value[]
  gpus: Value[][]
}

/** The stored form of a sample: `h` is `host`, and `g` is `gpus`. */
export interface SampleData {
  h: Value[]
  g: Value[][]
}

/**
 * Samples of one VM and hour: a list of times and, for each metric, a list of values, because such lists
 * compress well.
 */
export interface Chunk {
  t: number[]
  h: Value[][]
  g: Value[][]
}

/** A chunk of an hour. A chunk with the coarse step also has the GPU load of the hour. */
export interface PackedHour {
  /** In seconds since 1970. */
  hour: number
  step: number
  data: Chunk
  gpu_values?: number
  gpu_peak?: Value
}

export interface VmLabels {
  vmId: string
  name: string
  gpus: { uuid: string; name: string }[]
}

export interface MetricRange {
  /** In seconds since 1970; both are included. */
  start: number
  end: number
  step: number
}

export const sampleOf = ({ at, data }: { at: number; data: SampleData }): Sample => ({
  at,
  host: data.h,
  gpus: data.g,
})

const width = gpuMetricNames.length

/** Packs samples, which must all have the same number of GPUs. */
export function packChunk(samples: Sample[]): Chunk {
  const columnsOf = (rows: Value[][]) =>
    (rows[0] ?? []).map((_, column) => rows.map((row) => row[column] ?? null))
  return {
    t: samples.map(({ at }) => at),
    h: columnsOf(samples.map(({ host }) => host)),
    g: columnsOf(samples.map(({ gpus }) => gpus.flat())),
  }
}

export function unpackChunk({ t, h, g }: Chunk): Sample[] {
  return t.map((at, index) => {
    const gpuValues = g.map((column) => column[index] ?? null)
    const gpus = Array.from({ length: gpuValues.length / width }, (_, gpu) =>
      gpuValues.slice(gpu * width, (gpu + 1) * width),
    )
    return { at, host: h.map((column) => column[index] ?? null), gpus }
  })
}

/** Packs the samples of a VM into chunks of an hour, at their own resolution and at the coarse one. */
export function chunksOfSamples(samples: Sample[]): PackedHour[] {
  const byGpus = [...groupBy(samples, ({ gpus }) => gpus.length).values()]
  return byGpus
    .flatMap((group) => [...groupBy(group, ({ at }) => at - (at % 3600))])
    .flatMap(([hour, samplesOfHour]) => {
      const coarse = [...groupBy(samplesOfHour, ({ at }) => at - (at % coarseSampleSeconds))]
      return [
        { hour, step: sampleSeconds, data: packChunk(samplesOfHour) },
        {
          hour,
          step: coarseSampleSeconds,
          data: packChunk(coarse.map(([at, each]) => joinSamples(at, each))),
          ...loadOf(samplesOfHour),
        },
      ]
    })
}

const utilization = gpuMetricNames.indexOf('DCGM_FI_DEV_GPU_UTIL')

/** Counts the reported values of GPU utilization, and finds the highest. */
function loadOf(samples: Sample[]): { gpu_values: number; gpu_peak: Value } {
  const values = samples.flatMap(({ gpus }) => gpus.flatMap((gpu) => gpu[utilization] ?? []))
  return { gpu_values: values.length, gpu_peak: values.length > 0 ? Math.max(...values) : null }
}

function joinSamples(at: number, samples: Sample[]): Sample {
  const { host, gpus } = samples[0]!
  return {
    at,
    host: host.map((_, i) =>
      join(
        hostMetricNames[i]!,
        samples.map((sample) => sample.host[i] ?? null),
      ),
    ),
    gpus: gpus.map((gpu, g) =>
      gpu.map((_, i) =>
        join(
          gpuMetricNames[i]!,
          samples.map((sample) => sample.gpus[g]?.[i] ?? null),
        ),
      ),
    ),
  }
}

/** Returns the mean of a gauge, or the highest value of a counter; null if there are no values. */
function join(name: string, values: Value[]): Value {
  const known = values.filter((value) => value !== null)
  if (known.length === 0) return null
  if (vmMetrics[name]!.type === 'counter') return Math.max(...known)
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length
  return Math.round(mean * 1000) / 1000
}

/** Returns a series for each metric and GPU that has a value, with a point for each step of the range. */
export function seriesOf(
  vm: VmLabels,
  samples: Sample[],
  names: string[] | null,
  range: MetricRange,
): MetricSeries[] {
  const isWanted = (name: string) => names === null || names.includes(name)
  const labels = { vm_id: vm.vmId, Hostname: vm.name }
  const ofHost = hostMetricNames.flatMap((name, i) =>
    isWanted(name) ? seriesIfAny(name, labels, samples, (sample) => sample.host[i], range) : [],
  )
  const gpuCount = Math.max(0, ...samples.map(({ gpus }) => gpus.length))
  const ofGpus = Array.from({ length: gpuCount }, (_, gpu) =>
    gpuMetricNames.flatMap((name, i) =>
      isWanted(name)
        ? seriesIfAny(
            name,
            { ...labels, ...gpuLabels(vm, gpu) },
            samples,
            ({ gpus }) => gpus[gpu]?.[i],
            range,
          )
        : [],
    ),
  ).flat()
  return [...ofHost, ...ofGpus]
}

export const gpuLabels = ({ gpus }: VmLabels, gpu: number) => ({
  gpu: String(gpu),
  UUID: gpus[gpu]?.uuid ?? '',
  modelName: gpus[gpu]?.name ?? '',
})

function seriesIfAny(
  name: string,
  labels: Record<string, string>,
  samples: Sample[],
  read: (sample: Sample) => Value | undefined,
  { start, end, step }: MetricRange,
): MetricSeries[] {
  const first = start - (start % step)
  const buckets: (Value[] | undefined)[] = Array.from({ length: pointsIn({ start, end, step }) })
  let hasAny = false
  for (const sample of samples) {
    const value = read(sample) ?? null
    const index = Math.floor((sample.at - first) / step)
    if (value === null || index < 0 || index >= buckets.length) continue
    hasAny = true
    const bucket = buckets[index]
    if (bucket) bucket.push(value)
    else buckets[index] = [value]
  }
  if (!hasAny) return []
  const points = buckets.map((bucket, index): [number, Value] => [
    first + index * step,
    bucket ? (bucket.length === 1 ? bucket[0]! : join(name, bucket)) : null,
  ])
  return [{ name, unit: vmMetrics[name]!.unit, labels, points }]
}

export const pointsIn = ({ start, end, step }: MetricRange): number =>
  Math.floor(end / step) - Math.floor(start / step) + 1
