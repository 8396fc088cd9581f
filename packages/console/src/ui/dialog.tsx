import { Dialog as Base } from '@base-ui/react/dialog'
import type { UseMutationResult } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, type RefObject, useRef, useState } from 'react'
import { Button } from './button.tsx'
import { ErrorNote } from './error.tsx'
import { TextField } from './field.tsx'
import { Icon } from './icon.tsx'

interface DialogProps {
  isOpen: boolean
  onClose: () => void
  title: string
  children: ReactNode
  isWide?: boolean
  /** What has the focus first; without it, the first thing that can. */
  firstFocus?: RefObject<HTMLElement | null> | undefined
}

export function Dialog({ isOpen, onClose, title, children, isWide = false, firstFocus }: DialogProps) {
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-40 bg-backdrop" />
        <Base.Viewport className="fixed inset-0 z-50 flex items-start justify-center overflow-y-auto p-4 pt-[10vh] pb-[calc(16px+var(--toast-space,0px))] max-md:pt-4">
          <Base.Popup
            data-modal
            {...(firstFocus && { initialFocus: firstFocus })}
            className={`w-full rounded-md border border-line-strong bg-surface p-5 shadow-float ${isWide ? 'max-w-2xl' : 'max-w-md'}`}
          >
            <div className="mb-3 flex items-start justify-between gap-4">
              <Base.Title className="text-lg font-semibold">{title}</Base.Title>
              {/* This button has no hint: the first Escape would close the hint instead of the dialog. */}
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
}

/** One button ends the dialog; if that did not work, the dialog stays open and shows the error. */
export function FormDialog({
  action,
  onSubmit,
  isBusy,
  error,
  reason,
  kind = 'primary',
  children,
  ...dialog
}: FormDialogProps) {
  const cancel = useRef<HTMLButtonElement>(null)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!reason && !isBusy) onSubmit()
  }
  return (
    // What cannot be undone is not what Enter does first.
    <Dialog {...dialog} firstFocus={kind === 'danger' ? cancel : dialog.firstFocus}>
      <form onSubmit={submit} noValidate>
        <div className="flex flex-col gap-4">{children}</div>
        {error && (
          <div className="mt-4">
            <ErrorNote error={error} />
          </div>
        )}
        {/* On a phone the form may be longer than the screen; its buttons stay in sight. */}
        <div className="mt-5 flex justify-end gap-2 max-md:sticky max-md:-bottom-4 max-md:-mx-5 max-md:-mb-5 max-md:rounded-b-md max-md:border-t max-md:border-line max-md:bg-surface max-md:px-5 max-md:py-3">
          <Button ref={cancel} onClick={dialog.onClose}>
            Cancel
          </Button>
          <Button type="submit" kind={kind} isBusy={isBusy} reason={reason}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Returns the props of a dialog that makes a change; `then` is called once it has worked. */
export const submitting = <Input, Result>(
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
  /** These words say what goes and what stays. */
  children: ReactNode
  action: string
  isBusy: boolean
  error: Error | null
  onSubmit: () => void
  /** The name must be typed only where data is lost for good. */
  nameToType?: string
}

export function Confirm({ nameToType = '', children, ...rest }: ConfirmProps) {
  const [typed, setTyped] = useState('')
  const mustType = nameToType !== '' && typed !== nameToType
  return (
    <FormDialog {...rest} kind="danger" reason={mustType ? `Type ${nameToType} to confirm` : undefined}>
      <div className="text-ink-muted">{children}</div>
      {nameToType && (
        <TextField
          label={`Type ${nameToType} to confirm`}
          value={typed}
          onChange={setTyped}
          autoComplete="off"
          isMono
        />
      )}
    </FormDialog>
  )
}
