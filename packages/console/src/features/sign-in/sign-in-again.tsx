import { Dialog } from '@base-ui/react/dialog'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useEffect, useState } from 'react'
import { queryClient } from '../../api/client.ts'
import { useMe } from '../../api/me.ts'
import { session } from '../../api/session.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorNote } from '../../ui/error.tsx'
import { useSignInFields } from './sign-in-fields.tsx'

/** Covers the page when the session has ended. The page below keeps its state but is not visible. */
export function SignInAgain() {
  const [hasExpired, setExpired] = useState(false)
  useEffect(() => session.onEnd((how) => setExpired(how === 'expired')), [])
  return (
    <Dialog.Root open={hasExpired} disablePointerDismissal>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-60 bg-canvas" />
        <Dialog.Viewport className="fixed inset-0 z-70 flex items-start justify-center overflow-y-auto p-4 pt-[16vh]">
          <Dialog.Popup
            data-modal
            className="w-full max-w-sm rounded-md border border-line-strong bg-surface p-6 shadow-float"
          >
            <Dialog.Title className="text-lg font-semibold">Your session has ended</Dialog.Title>
            <Form onDone={() => setExpired(false)} />
          </Dialog.Popup>
        </Dialog.Viewport>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function Form({ onDone }: { onDone: () => void }) {
  const { caller } = useMe()
  const signIn = useMutation({
    mutationFn: session.signIn,
    onSuccess: () => {
      onDone()
      void queryClient.invalidateQueries()
    },
  })
  const { credentials, fields, error, reason } = useSignInFields(signIn.error, caller.email)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!reason && !signIn.isPending) signIn.mutate(credentials)
  }
  return (
    <form onSubmit={submit} noValidate className="mt-2 flex flex-col gap-4">
      <p className="text-ink-muted">Sign in to continue. Your unsaved input is kept.</p>
      {fields}
      {error && <ErrorNote error={error} />}
      <Button type="submit" kind="primary" isBusy={signIn.isPending} reason={reason} className="w-full">
        Sign in
      </Button>
      <a href="/sign-in" className="link text-center text-sm">
        Use another sign-in method or account (unsaved input will be lost)
      </a>
    </form>
  )
}
