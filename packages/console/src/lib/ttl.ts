import { type ExpiryAction, expiryActions, ttlChoicesHours } from '@slipway/contract/states'
import { plural } from './format.ts'

const expiryText: Record<ExpiryAction, string> = {
  stop: 'Stop the VM (disks are kept)',
  delete: 'Delete the VM (data disks are kept)',
}

/** The choices for the time to live, in hours. */
export const ttlChoices = ttlChoicesHours.map((hours) => ({
  value: String(hours),
  label: hours < 24 ? plural(hours, 'hour') : plural(hours / 24, 'day'),
}))

/** Returns the choices, and the given value if it is not one of them. */
export const ttlChoicesWith = (hours: string) =>
  hours === '' || ttlChoices.some(({ value }) => value === hours)
    ? ttlChoices
    : [...ttlChoices, { value: hours, label: `${hours} hours` }]

/** The choices for the action at expiry. */
export const expiryChoices = expiryActions.map((value) => ({ value, label: expiryText[value] }))
