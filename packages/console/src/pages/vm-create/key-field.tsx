import { parseSshPublicKey } from '@slipway/contract/ssh-key'
import { TextArea } from '../../ui/field.tsx'
import { keyOf } from './remembered-key.ts'

export function KeyField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const text = keyOf(value)
  const key = text === '' ? null : parseSshPublicKey(text)
  return (
    <TextArea
      label="SSH public key"
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
