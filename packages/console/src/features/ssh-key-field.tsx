import { parseSshPublicKey } from '@slipway/contract/ssh-key'
import { TextArea } from '../ui/field.tsx'

/** A pasted key often brings a line end along. */
export const keyOf = (text: string): string => text.trim()

export function SshKeyField({
  label = 'SSH public key',
  value,
  onChange,
}: {
  label?: string
  value: string
  onChange: (value: string) => void
}) {
  const text = keyOf(value)
  const key = text === '' ? null : parseSshPublicKey(text)
  return (
    <TextArea
      label={label}
      value={value}
      onChange={onChange}
      rows={3}
      placeholder="ssh-ed25519 AAAA… you@laptop"
      problem={key && !key.ok ? `The key ${key.problem}.` : undefined}
      hint={
        key?.ok ? (
          <span className="text-green-text">
            {key.type}, {key.bits} bits{key.comment && `, ${key.comment}`}
          </span>
        ) : (
          'Paste the content of ~/.ssh/id_ed25519.pub.'
        )
      }
    />
  )
}
