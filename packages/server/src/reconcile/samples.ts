import { hostMetricNames } from '@slipway/contract'
import { chunksOfSamples, sampleOf } from '../domain/guest/samples.ts'
import { chunksOf, groupBy } from '../domain/lists.ts'
import type { VmSample } from '../engines/engine.ts'
import type { Services } from '../services.ts'
import { insertChunks, insertSamples, type NewSample, takeOldSamples } from '../store/metrics/samples.ts'

const samplesPerStatement = 1_000
/** Few enough that packing their samples does not block the process for long. */
const vmsPerChunking = 50

/** Stores one sample of each running VM of a location, and returns the samples. */
export async function sampleLocation(
  { database, engines }: Services,
  location: string,
  signal: AbortSignal,
): Promise<VmSample[]> {
  const samples: VmSample[] = []
  for await (const sample of engines.get(location)!.sample(signal)) samples.push(sample)
  for (const chunk of chunksOf(samples, samplesPerStatement))
    await insertSamples(database, location, chunk.map(newSample))
  return samples
}

function newSample({ vmId, host, guest }: VmSample): NewSample {
  const values = { ...host, slipway_vm_ssh_sessions: guest?.sshSessions ?? null }
  return {
    vm_id: vmId,
    data: {
      h: hostMetricNames.map((name) => values[name] ?? null),
      g: guest?.gpus.map((gpu) => gpu.values) ?? [],
    },
    gpus: guest?.gpus.map(({ uuid, name }) => ({ uuid, name })) ?? null,
  }
}

/**
 * Packs the samples of complete hours. Each transaction packs those of a few VMs, so that any process can
 * continue the work.
 */
export async function packSamples({ database }: Services, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const count = await database.transaction(async (tx) => {
      const rows = await takeOldSamples(tx, vmsPerChunking)
      const byVm = groupBy(rows, ({ vm_id }) => vm_id)
      const chunks = [...byVm].flatMap(([vm_id, rowsOfVm]) => {
        const samples = rowsOfVm.map(sampleOf).toSorted((a, b) => a.at - b.at)
        return chunksOfSamples(samples).map((chunk) => ({ vm_id, ...chunk }))
      })
      if (chunks.length > 0) await insertChunks(tx, chunks)
      return rows.length
    })
    if (count === 0) return
  }
}
