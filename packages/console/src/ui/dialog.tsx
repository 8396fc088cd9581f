import { Dialog as Base } from '@base-ui/react/dialog'
import type { UseMutationResult } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, type RefObject, useRef, useState } from 'react'
import type { Commands } from '../lib/shell.ts'
import { Button } from './button.tsx'
import { ShowAs } from './commands.tsx'
import { ErrorNote } from './error.tsx'
import { TextField } from './field.tsx'
import { Icon } from './icon.tsx'

interface DialogProps {
  isOpen: boolean
  onClose: () => void
  title: string
  children: ReactNode
  isWide?: boolean
  /** The element with the initial focus; by default the first field. */
  firstFocus?: RefObject<HTMLElement | null> | undefined
}

export function Dialog({ isOpen, onClose, title, children, isWide = false, firstFocus }: DialogProps) {
  const popup = useRef<HTMLDivElement>(null)
  const find = (selector: string) => popup.current?.querySelector<HTMLElement>(selector)
  const initialFocus = () =>
    find('[data-typed-name]') ?? firstFocus?.current ?? find('[autofocus], input, select, textarea') ?? true
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-40 bg-backdrop" />
        <Base.Viewport className="fixed inset-0 z-50 flex items-start justify-center overflow-y-auto p-4 pt-[10vh] pb-[calc(16px+var(--toast-space,0px))] max-md:pt-4">
          <Base.Popup
            data-modal
            ref={popup}
            initialFocus={initialFocus}
            className={`w-full rounded-md border border-line-strong bg-surface p-5 shadow-float ${isWide ? 'max-w-2xl' : 'max-w-md'}`}
          >
            <div className="mb-3 flex items-start justify-between gap-4">
              <Base.Title className="text-lg font-semibold">{title}</Base.Title>
              {/* No hint on this button: Escape would close the hint instead of the dialog. */}
              <Base.Close
                aria-label="Close"
                className="inline-flex size-7 shrink-0 items-center justify-center rounded-md text-ink-muted hover:bg-sunken hover:text-ink"
              >
                <Icon name="x" size={16} />
              </Base.Close>
            </div>
            {children}
          </Base.Popup>
        </Base.Viewport>
      </Base.Portal>
    </Base.Root>
  )
}

interface FormDialogProps extends DialogProps {
  action: string
  onSubmit: () => void
  isBusy: boolean
  error: Error | null
  reason?: string | undefined
  kind?: 'primary' | 'danger'
  /** The text of the button that closes the dialog. */
  dismiss?: string
  /** Equivalent commands, shown on demand. They must not contain a secret. */
  commands?: Commands | undefined
}

/** A dialog with a form. It stays open and shows the error if the request fails. */
export function FormDialog({
  action,
  onSubmit,
  isBusy,
  error,
  reason,
  kind = 'primary',
  dismiss = 'Cancel',
  commands,
  children,
  ...dialog
}: FormDialogProps) {
  const cancel = useRef<HTMLButtonElement>(null)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    // React would also pass the event to the form of the page that contains the dialog.
    event.stopPropagation()
    if (!reason && !isBusy) onSubmit()
  }
  return (
    // Enter must not confirm a destructive action, so Cancel has the focus. A name that must be typed comes
    // before it, because the form cannot be submitted until the name is complete.
    <Dialog {...dialog} firstFocus={kind === 'danger' ? cancel : dialog.firstFocus}>
      <form onSubmit={submit} noValidate>
        <div className="flex flex-col gap-4">{children}</div>
        {commands && (
          <div className="mt-4">
            <ShowAs commands={commands} />
          </div>
        )}
        {error && (
          <div className="mt-4">
            <ErrorNote error={error} />
          </div>
        )}
        {/* The form can be longer than the window, so its buttons are sticky. */}
        <div className="sticky -bottom-4 -mx-5 mt-5 -mb-5 flex justify-end gap-2 rounded-b-md border-t border-line bg-surface px-5 py-3">
          <Button ref={cancel} onClick={dialog.onClose}>
            {dismiss}
          </Button>
          <Button type="submit" kind={kind} isBusy={isBusy} reason={reason}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Returns the props of a dialog that runs a mutation; `then` is called after success. */
export const submitProps = <Input, Result>(
  change: UseMutationResult<Result, Error, Input>,
  input: Input,
  then: (result: Result) => void,
) => ({
  isBusy: change.isPending,
  error: change.error,
  onSubmit: () => change.mutate(input, { onSuccess: then }),
})

interface ConfirmProps {
  isOpen: boolean
  onClose: () => void
  title: string
  /** Explains what will be deleted and what will be kept. */
  children: ReactNode
  action: string
  isBusy: boolean
  error: Error | null
  onSubmit: () => void
  isWide?: boolean
  /** The text of the button that closes the dialog. */
  dismiss?: string
  /** The user must type this name; only for actions that lose data. */
  nameToType?: string
  commands?: Commands | undefined
}

export function Confirm({ nameToType = '', children, ...rest }: ConfirmProps) {
  const [typed, setTyped] = useState('')
  const mustType = nameToType !== '' && typed !== nameToType
  return (
    <FormDialog {...rest} kind="danger" reason={mustType ? `Type ${nameToType} to confirm` : undefined}>
      <div className="text-ink-muted">{children}</div>
      {nameToType && <TypedName name={nameToType} value={typed} onChange={setTyped} />}
    </FormDialog>
  )
}

interface TypedNameProps {
  name: string
  value: string
  onChange: (value: string) => void
}

/** The field in which the user types a name to confirm. It has the initial focus. */
export const TypedName = ({ name, value, onChange }: TypedNameProps) => (
  <TextField
    label={`Type ${name} to confirm`}
    value={value}
    onChange={onChange}
    autoComplete="off"
    isMono
    data-typed-name
  />
)
