import { hoursPerMonth, idleSuggestion, type Suggestion } from '@slipway/contract'
import { usdNumber } from '../domain/charges.ts'
import { parseDecimal, timesExact } from '../domain/money.ts'
import type { SuggestionRow } from '../store/finding/suggestions.ts'

const { hours, gpuPercent } = idleSuggestion

export function suggestionView({
  kind,
  id,
  name,
  usd_per_hour,
  gpu_peak,
  size_gib,
}: SuggestionRow): Suggestion {
  const usd_per_month = usdNumber(timesExact(parseDecimal(usd_per_hour), BigInt(hoursPerMonth)))
  const common = { kind, resource_id: id, name, usd_per_month }
  if (kind === 'idle_vm')
    return {
      ...common,
      evidence: { highest_gpu_utilization: gpu_peak!, hours },
      message: `The GPUs of ${name} were below ${gpuPercent}% for ${hours} hours. Stop it, or give it an idle policy.`,
    }
  return {
    ...common,
    evidence: { size_gib: size_gib! },
    message: `${name} (${size_gib} GiB) is not attached to a VM. Delete it if you no longer need its data.`,
  }
}
