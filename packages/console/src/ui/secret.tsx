import { type ReactNode, useState } from 'react'
import { Button } from './button.tsx'
import { copyText } from './copy.tsx'
import { Dialog } from './dialog.tsx'
import { Icon } from './icon.tsx'

/** Shows a secret once. Until the secret has been copied, closing the dialog needs a second step. */
export function SecretDialog({
  title,
  secret,
  note,
  ifLost,
  onClose,
}: {
  title: string
  secret: string
  note: ReactNode
  /** Explains how to get another secret. */
  ifLost: string
  onClose: () => void
}) {
  const [isLeaving, setLeaving] = useState(false)
  const [isCopied, setCopied] = useState(false)
  const markCopied = () => {
    setCopied(true)
    setLeaving(false)
  }
  const leave = () => (isLeaving || isCopied ? onClose() : setLeaving(true))
  return (
    <Dialog isOpen onClose={leave} title={title} isWide>
      <p className="flex items-start gap-2 rounded-md border border-amber/50 bg-amber-soft p-3 text-sm">
        <Icon name="triangle-alert" size={16} className="mt-0.5 shrink-0 text-amber-text" />
        Copy it now. It is shown only once.
      </p>
      <div
        data-secret
        // The secret can also be selected and copied without the button.
        onCopy={markCopied}
        className="mt-3 flex items-start justify-between gap-3 rounded-md border border-line bg-sunken px-3 py-2 max-sm:flex-col"
      >
        <span className="mono min-w-0 self-center wrap-anywhere max-sm:self-start">{secret}</span>
        <Button
          icon={<Icon name={isCopied ? 'check' : 'copy'} size={14} />}
          onClick={() => void copyText(secret).then(markCopied)}
        >
          {isCopied ? 'Copied' : 'Copy'}
        </Button>
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
        <Button kind="primary" onClick={isLeaving ? () => setLeaving(false) : leave}>
          {isLeaving ? 'Keep open' : 'Done'}
        </Button>
      </div>
    </Dialog>
  )
}
