import { useState } from 'react'
import { Button } from './button.tsx'
import { Copyable } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import { Icon } from './icon.tsx'

/** Shows a secret once. Escape or a click outside asks before it closes the dialog. */
export function SecretDialog({
  title,
  secret,
  note,
  ifLost,
  onClose,
}: {
  title: string
  secret: string
  note: string
  /** Explains how to get another secret. */
  ifLost: string
  onClose: () => void
}) {
  const [isLeaving, setLeaving] = useState(false)
  return (
    <Dialog isOpen onClose={() => (isLeaving ? onClose() : setLeaving(true))} title={title} isWide>
      <p className="flex items-start gap-2 rounded-md border border-amber/50 bg-amber-soft p-3 text-sm">
        <Icon name="triangle-alert" size={16} className="mt-0.5 shrink-0 text-amber-text" />
        Copy it now. It is shown only once.
      </p>
      <div
        data-secret
        className="mt-3 flex min-w-0 items-center rounded-md border border-line bg-sunken px-3 py-2"
      >
        <Copyable text={secret} label="Copy the secret" />
      </div>
      <p className="mt-3 text-sm text-ink-muted">{note}</p>
      {isLeaving && (
        <p role="alert" className="mt-3 font-medium">
          Close without saving it? {ifLost}
        </p>
      )}
      <div className="mt-5 flex justify-end gap-2">
        {isLeaving && (
          <Button kind="danger" onClick={onClose}>
            Close anyway
          </Button>
        )}
        <Button kind="primary" onClick={isLeaving ? () => setLeaving(false) : onClose}>
          {isLeaving ? 'Keep open' : 'Done'}
        </Button>
      </div>
    </Dialog>
  )
}
