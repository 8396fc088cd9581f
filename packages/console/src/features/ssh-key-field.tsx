import { parseSshPublicKey } from '@slipway/contract/ssh-key'
import { TextArea } from '../ui/field.tsx'

/** Removes the line break at the end of most pasted keys. */
export const trimKey = (text: string): string => text.trim()

/** Returns what is wrong with the key; empty if the key is valid or missing. */
export function keyProblem(value: string): string {
  const key = parseSshPublicKey(trimKey(value))
  return key.ok || trimKey(value) === '' ? '' : `The key ${key.problem}.`
}

export function SshKeyField({
  label = 'SSH public key',
  value,
  onChange,
}: {
  label?: string
  value: string
  onChange: (value: string) => void
}) {
  const key = parseSshPublicKey(trimKey(value))
  return (
    <TextArea
      label={label}
      value={value}
      onChange={onChange}
      rows={3}
      placeholder="ssh-ed25519 AAAA… you@laptop"
      problem={keyProblem(value)}
      hint={
        key.ok ? (
          <span className="text-green-text">
            {key.type}, {key.bits} bits{key.comment && `, ${key.comment}`}
          </span>
        ) : (
          'Paste the contents of ~/.ssh/id_ed25519.pub.'
        )
      }
    />
  )
}
