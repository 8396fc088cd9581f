import {
  type ExpiryAction,
  expiryActions,
  maxTtlSeconds,
  minTtlSeconds,
  ttlChoicesHours,
} from '@slipway/contract/states'
import { count, plural } from './format.ts'

const expiryText: Record<ExpiryAction, string> = {
  stop: 'Stop the VM (disks are kept)',
  delete: 'Delete the VM (data disks are kept)',
}

/** The choices for the time to live, in hours. */
export const ttlChoices = ttlChoicesHours.map((hours) => ({
  value: String(hours),
  label: hours < 24 ? plural(hours, 'hour') : plural(hours / 24, 'day'),
}))

/** Converts hours as the user entered them; 0 if there is no time to live. */
export const ttlSeconds = (hours: string): number => Math.round(Number(hours) * 3600) || 0

/** Returns why the hours are not accepted. Empty hours mean no time to live. */
export const ttlProblem = (hours: string): string | undefined =>
  hours === '' || (ttlSeconds(hours) >= minTtlSeconds && ttlSeconds(hours) <= maxTtlSeconds)
    ? undefined
    : `Enter a number of hours from ${(minTtlSeconds / 3600).toFixed(2)} (${minTtlSeconds / 60} minutes) to ${count(maxTtlSeconds / 3600)}.`

/** A time to live as an argument of the CLI. */
export function ttlArgument(seconds: number): string {
  if (seconds % 60 !== 0) return `${seconds}s`
  return seconds % 3600 === 0 ? `${seconds / 3600}h` : `${seconds / 60}m`
}

/** The choices for the action at expiry. */
export const expiryChoices = expiryActions.map((value) => ({ value, label: expiryText[value] }))
