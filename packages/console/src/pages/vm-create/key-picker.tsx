import type { SshKey } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { useProjectId } from '../../api/me.ts'
import { SshKeyField } from '../../features/ssh-key-field.tsx'
import { CheckField } from '../../ui/field.tsx'

interface KeyPickerProps {
  registered: SshKey[]
  chosen: string[]
  onChoose: (ids: string[]) => void
  pasted: string
  onPaste: (key: string) => void
}

/** Selects saved SSH keys, and accepts one pasted key. */
export function KeyPicker({ registered, chosen, onChoose, pasted, onPaste }: KeyPickerProps) {
  const projectId = useProjectId()
  const manage = (
    <Link to="/projects/$projectId/settings/ssh-keys" params={{ projectId }} className="link text-sm">
      Manage SSH keys
    </Link>
  )
  return (
    <>
      {registered.length > 0 && (
        <div className="flex flex-col gap-1">
          <div className="flex items-baseline justify-between gap-4">
            <span className="text-sm font-medium">SSH keys</span>
            {manage}
          </div>
          <div className="card max-h-56 divide-y divide-line overflow-y-auto">
            {registered.map(({ id, name, type, fingerprint }) => (
              <div key={id} className="px-3 py-1.5">
                <CheckField
                  label={name}
                  hint={
                    // A long fingerprint is on its own line.
                    <>
                      {type} <span className="mono inline-block max-w-full break-all">{fingerprint}</span>
                    </>
                  }
                  isChecked={chosen.includes(id)}
                  onChange={(isChecked) =>
                    onChoose(isChecked ? [...chosen, id] : chosen.filter((each) => each !== id))
                  }
                />
              </div>
            ))}
          </div>
        </div>
      )}
      <SshKeyField
        label={registered.length > 0 ? 'Another SSH public key' : 'SSH public key'}
        value={pasted}
        onChange={onPaste}
      />
      {registered.length === 0 && (
        <p className="-mt-3 text-sm text-ink-muted">Save keys that you use often: {manage}</p>
      )}
    </>
  )
}
