import { useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { EntryForm, NewPassword, tooShort, useEntry } from '../features/entry-form.tsx'
import { useSignInFields } from '../features/sign-in-fields.tsx'
import { TextField } from '../ui/field.tsx'

const ssoNotes: Record<string, string> = {
  refused: 'Single sign-on did not work. Try again, or ask an operator.',
  taken: 'This identity belongs to another account already.',
}

export function SignIn() {
  const { enter, error, isBusy } = useEntry()
  const { ended, sso } = useSearch({ strict: false }) as { ended?: string; sso?: string }
  const form = useSignInFields(error)
  const providers = useQuery(read('authOidcList', {}))
  const note = ended ? 'The session has ended. Sign in to go on where you were.' : (ssoNotes[sso ?? ''] ?? '')
  return (
    <EntryForm
      title="Sign in"
      action="Sign in"
      isBusy={isBusy}
      error={form.error}
      reason={form.reason}
      onSubmit={() => enter(form.credentials)}
      note={error ? '' : note}
      footer={
        <>
          No account? An owner of your organization can invite you.{' '}
          <a href="/forgot" className="link">
            Forgot the password?
          </a>
          <br />
          <a href="/catalogue" className="link">
            Types, prices and stock
          </a>
        </>
      }
    >
      {form.fields}
      {providers.data?.items.map(({ name }) => (
        <a
          key={name}
          className="flex h-8 items-center justify-center rounded-md border border-line-strong font-medium hover:bg-sunken"
          href={`/v0.1/auth/oidc/${name}`}
        >
          Sign in with {name}
        </a>
      ))}
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
      onSubmit={() => enter({ setup_code: code.trim(), email: email.trim(), password })}
      footer="The server printed the code when it first started. It works once."
    >
      <TextField label="Set-up code" value={code} onChange={setCode} autoComplete="off" isMono />
      <TextField label="E-mail" type="email" autoComplete="username" value={email} onChange={setEmail} />
      <NewPassword value={password} onChange={setPassword} />
    </EntryForm>
  )
}
