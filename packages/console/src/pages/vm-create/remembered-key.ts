import type { SshKey } from '@slipway/sdk'
import { trimKey } from '../../features/ssh-key-field.tsx'

const pastedKey = 'slipway-ssh-key'
const chosenKeys = 'slipway-ssh-key-ids'

export const rememberedKey = (): string => localStorage.getItem(pastedKey) ?? ''

/** Returns the preselected keys: those of the last VM, or the only saved key. */
export function defaultKeys(registered: SshKey[]): string[] {
  const last = (localStorage.getItem(chosenKeys) ?? '').split(',')
  const known = registered.map(({ id }) => id).filter((id) => last.includes(id))
  if (known.length > 0) return known
  return registered.length === 1 && !rememberedKey() ? [registered[0]!.id] : []
}

export function rememberKeys(pasted: string, chosen: string[]): void {
  localStorage.setItem(pastedKey, trimKey(pasted))
  localStorage.setItem(chosenKeys, chosen.join(','))
}
