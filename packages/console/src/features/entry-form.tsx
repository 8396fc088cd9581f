import { useNavigate, useRouter, useSearch } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useState } from 'react'
import { queryClient } from '../api/client.ts'
import { type SignIn as Credentials, session } from '../api/session.ts'
import { Button } from '../ui/button.tsx'
import { ErrorNote } from '../ui/error.tsx'
import { TextField } from '../ui/field.tsx'

export const minPasswordLength = 8

/** Signs the visitor in and opens the page that they requested. */
export function useSignIn() {
  const navigate = useNavigate()
  const router = useRouter()
  const search = useSearch({ strict: false }) as { next?: string }
  const [error, setError] = useState<Error | null>(null)
  const [isBusy, setBusy] = useState(false)
  const signIn = async (credentials: Credentials) => {
    setBusy(true)
    setError(null)
    try {
      await session.signIn(credentials)
      queryClient.clear()
      // Accept only paths on this site: a crafted link must not redirect to another site after sign-in.
      const next = /^\/(?!\/|\\)/.test(search.next ?? '') ? search.next! : '/'
      await router.invalidate()
      await navigate({ href: next, replace: true })
    } catch (cause) {
      setError(cause as Error)
    } finally {
      setBusy(false)
    }
  }
  return { signIn, error, isBusy }
}

/** Reads the code after `#`, a part of the link that browsers never send to a server. */
export const codeFromLink = () => new URLSearchParams(location.hash.slice(1)).get('code') ?? ''

export const isTooShort = (password: string) => password.length < minPasswordLength

interface NewPasswordProps {
  value: string
  onChange: (value: string) => void
  autoFocus?: boolean
}

export function NewPassword({ value, onChange, autoFocus }: NewPasswordProps) {
  return (
    <TextField
      label="Password"
      type="password"
      autoComplete="new-password"
      value={value}
      onChange={onChange}
      hint={`At least ${minPasswordLength} characters.`}
      autoFocus={autoFocus}
    />
  )
}

interface EntryFormProps {
  title: string
  action: string
  isBusy: boolean
  error: Error | null
  reason: string | undefined
  onSubmit: () => void
  note?: string
  footer: ReactNode
  children?: ReactNode
}

export function EntryForm({
  title,
  action,
  isBusy,
  error,
  reason,
  onSubmit,
  note = '',
  footer,
  children,
}: EntryFormProps) {
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!reason && !isBusy) onSubmit()
  }
  return (
    <EntryFrame footer={footer}>
      <form onSubmit={submit} noValidate className="card flex w-full max-w-sm flex-col gap-4 p-6">
        <h1 className="text-lg font-semibold">{title}</h1>
        {note && (
          <p role="status" className="rounded-md bg-sunken p-3 text-sm">
            {note}
          </p>
        )}
        {children}
        {error && <ErrorNote error={error} />}
        <Button type="submit" kind="primary" isBusy={isBusy} reason={reason} className="w-full">
          {action}
        </Button>
      </form>
    </EntryFrame>
  )
}

/** A page for visitors who are not signed in. */
export function EntryFrame({ footer, children }: { footer: ReactNode; children: ReactNode }) {
  return (
    <main className="flex min-h-dvh flex-col items-center p-6 pt-[16vh]">
      <div className="mb-6 flex items-center gap-2 text-xl font-semibold tracking-tight">
        <img src="/favicon.svg" alt="" width={28} height={28} />
        slipway
      </div>
      {children}
      <p className="mt-4 max-w-sm text-center text-sm text-balance text-ink-muted">{footer}</p>
    </main>
  )
}
