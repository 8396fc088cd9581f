import { type ExpiryAction, expiryActions, ttlChoicesHours } from '@slipway/contract/states'
import { plural } from './format.ts'

const expiryWords: Record<ExpiryAction, string> = {
  stop: 'Stop the VM (disks are kept)',
  delete: 'Delete the VM (data disks are kept)',
}

/** People are offered these times to live, in hours. */
export const ttlChoices = ttlChoicesHours.map((hours) => ({
  value: String(hours),
  label: hours < 24 ? plural(hours, 'hour') : plural(hours / 24, 'day'),
}))

/** One of these happens to a VM when its time is over. */
export const expiryChoices = expiryActions.map((value) => ({ value, label: expiryWords[value] }))
