import { detachedSuggestionHours, idleSuggestion, sampleSeconds } from '@slipway/contract'
import { coveredShare } from '../../domain/guest/idle.ts'
import { now, priceNow } from '../../postgres/sorted.ts'
import { statement } from '../../postgres/statement.ts'

/** A resource that costs money and is not used. */
export interface SuggestionRow {
  kind: 'idle_vm' | 'detached_disk'
  id: string
  name: string
  usd_per_hour: string
  gpu_peak: number | null
  size_gib: number | null
}

const { hours, gpuPercent } = idleSuggestion
const neededValues = ((hours * 3600) / sampleSeconds) * coveredShare

/**
 * Utilization is the first of a GPU's values (index 0). The samples of the current hour are not packed yet.
 */
const isBusyNow = `EXISTS (
  SELECT FROM vm_samples s CROSS JOIN LATERAL json_array_elements(s.data -> 'g') g (gpu)
  WHERE s.vm_id = v.id AND (g.gpu ->> 0)::float8 >= ${gpuPercent})`

// A VM on reserved GPUs has no additional cost, so stopping it saves nothing.
const idleVms = `
  SELECT 'idle_vm' AS kind, v.id, v.name, ${priceNow('v.type')} AS usd_per_hour, load.peak::float8 AS gpu_peak,
         NULL::float8 AS size_gib
  FROM vms v
  CROSS JOIN LATERAL (
    SELECT max(c.gpu_peak) AS peak, sum(c.gpu_values) AS count FROM vm_sample_chunks c
    WHERE c.vm_id = v.id AND c.step = 300 AND c.hour >= date_trunc('hour', ${now}) - interval '${hours} hours') load
  WHERE v.project_id = :projectId AND v.deleted_at IS NULL AND v.state = 'STATE_RUNNING' AND v.reservation_id IS NULL
    AND load.peak < ${gpuPercent} AND load.count >= ${neededValues} * v.gpu_count AND NOT ${isBusyNow}`

const detachedDisks = `
  SELECT 'detached_disk', d.id, d.name, d.size_gib * ${priceNow('d.type')}, NULL, d.size_gib::float8
  FROM disks d
  WHERE d.project_id = :projectId AND d.state = 'available' AND NOT d.is_protected
    AND d.created_at < ${now} - interval '${detachedSuggestionHours} hours'
    AND NOT EXISTS (SELECT FROM disk_attachments a WHERE a.disk_id = d.id)`

/** Lists possible savings of a project, the largest first. Resources without a price are not listed. */
export const listSuggestions = statement<SuggestionRow, { projectId: string; limit: number }>(
  'suggestion_list',
  `SELECT kind, id, name, usd_per_hour::text, gpu_peak, size_gib FROM (${idleVms} UNION ALL ${detachedDisks}) s
   WHERE usd_per_hour > 0 ORDER BY s.usd_per_hour DESC, id LIMIT :limit`,
).allBy('projectId', 'limit')
