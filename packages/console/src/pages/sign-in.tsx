import { useNavigate, useRouter, useSearch } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useState } from 'react'
import { queryClient } from '../api/client.ts'
import { type SignIn as Credentials, session } from '../api/session.ts'
import { Button } from '../ui/button.tsx'
import { ErrorNote } from '../ui/error.tsx'
import { TextField } from '../ui/field.tsx'

const shortestPassword = 8

/** Opens a session and goes where the visitor wanted to go. */
function useEntry() {
  const navigate = useNavigate()
  const router = useRouter()
  const search = useSearch({ strict: false }) as { next?: string }
  const [error, setError] = useState<Error | null>(null)
  const [isBusy, setBusy] = useState(false)
  const enter = async (credentials: Credentials) => {
    setBusy(true)
    setError(null)
    try {
      await session.signIn(credentials)
      queryClient.clear()
      // Only our own paths are followed: a link must not be able to lead elsewhere after signing in.
      const next = /^\/(?!\/|\\)/.test(search.next ?? '') ? search.next! : '/'
      await router.invalidate()
      await navigate({ href: next, replace: true })
    } catch (cause) {
      setError(cause as Error)
    } finally {
      setBusy(false)
    }
  }
  return { enter, error, isBusy }
}

export function SignIn() {
  const { enter, error, isBusy } = useEntry()
  const { ended } = useSearch({ strict: false }) as { ended?: string }
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  return (
    <EntryForm
      title="Sign in"
      action="Sign in"
      isBusy={isBusy}
      error={error}
      reason={email && password ? undefined : 'Fill in both fields first'}
      onSubmit={() => enter({ email: email.trim(), password })}
      note={ended && !error ? 'The session has ended. Sign in to go on where you were.' : ''}
      footer="No account? An owner of your organization can invite you."
    >
      <TextField
        label="E-mail"
        type="email"
        autoComplete="username"
        value={email}
        onChange={setEmail}
        autoFocus
      />
      <TextField
        label="Password"
        type="password"
        autoComplete="current-password"
        value={password}
        onChange={setPassword}
      />
    </EntryForm>
  )
}

export function SetUp() {
  const { enter, error, isBusy } = useEntry()
  const search = useSearch({ strict: false }) as { code?: string }
  const [code, setCode] = useState(search.code ?? '')
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  return (
    <EntryForm
      title="Set up the first operator"
      action="Create the operator"
      isBusy={isBusy}
      error={error}
      reason={code && email && !tooShort(password) ? undefined : 'Fill in every field first'}
      onSubmit={() => enter({ code: code.trim(), email: email.trim(), password })}
      footer="The server printed the code when it first started. It works once."
    >
      <TextField label="Set-up code" value={code} onChange={setCode} autoComplete="off" isMono />
      <TextField label="E-mail" type="email" autoComplete="username" value={email} onChange={setEmail} />
      <NewPassword value={password} onChange={setPassword} />
    </EntryForm>
  )
}

export function Accept() {
  const { enter, error, isBusy } = useEntry()
  const search = useSearch({ strict: false }) as { code?: string }
  const [code, setCode] = useState(search.code ?? '')
  const [password, setPassword] = useState('')
  return (
    <EntryForm
      title="Accept the invitation"
      action="Set password and sign in"
      isBusy={isBusy}
      error={error}
      reason={
        code && !tooShort(password)
          ? undefined
          : `Choose a password of at least ${shortestPassword} characters`
      }
      onSubmit={() => enter({ code: code.trim(), password })}
      footer="The link works once. If it has been used, sign in instead."
    >
      {!search.code && <TextField label="Code" value={code} onChange={setCode} autoComplete="off" isMono />}
      <NewPassword value={password} onChange={setPassword} />
    </EntryForm>
  )
}

const tooShort = (password: string) => password.length < shortestPassword

function NewPassword({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return (
    <TextField
      label="Password"
      type="password"
      autoComplete="new-password"
      value={value}
      onChange={onChange}
      hint={`At least ${shortestPassword} characters.`}
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
  footer: string
  children: ReactNode
}

function EntryForm({
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
    <main className="flex min-h-dvh flex-col items-center p-6 pt-[16vh]">
      <div className="mb-6 flex items-center gap-2 text-xl font-semibold tracking-tight">
        <img src="/favicon.svg" alt="" width={28} height={28} />
        slipway
      </div>
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
      <p className="mt-4 max-w-sm text-center text-sm text-balance text-ink-muted">{footer}</p>
    </main>
  )
}
