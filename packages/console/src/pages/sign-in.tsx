import { useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { read } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { EntryForm, isTooShort, NewPassword, useSignIn } from '../features/entry-form.tsx'
import { useSignInFields } from '../features/sign-in/sign-in-fields.tsx'
import { TextField } from '../ui/field.tsx'

const ssoNotes: Record<string, string> = {
  refused: 'Single sign-on failed. Try again, or contact the operator.',
  taken: 'This identity is already linked to another account.',
}

export function SignIn() {
  const { signIn, error, isBusy } = useSignIn()
  const { ended, sso } = useSearch({ strict: false }) as { ended?: string; sso?: string }
  const form = useSignInFields(error)
  const providers = useQuery(read('authOidcList', {}))
  const note = ended ? 'Your session has ended. Sign in to continue.' : (ssoNotes[sso ?? ''] ?? '')
  return (
    <EntryForm
      title="Sign in"
      action="Sign in"
      isBusy={isBusy}
      error={form.error}
      reason={form.reason}
      onSubmit={() => signIn(form.credentials)}
      note={error ? '' : note}
      footer={
        <>
          No account? Ask an owner of your organization for an invitation.
          <br />
          {/* Links below each other must be high enough for fingers. */}
          <a href="/forgot" className="link inline-block py-1">
            Forgot your password?
          </a>
          <br />
          <a href="/catalogue" className="link inline-block py-1">
            Types, prices and availability
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
  const { signIn, error, isBusy } = useSignIn()
  const search = useSearch({ strict: false }) as { code?: string }
  const [code, setCode] = useState(search.code ?? '')
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  return (
    <EntryForm
      title="Create the first operator"
      action="Create operator"
      isBusy={isBusy}
      error={error}
      reason={code && email && !isTooShort(password) ? undefined : 'Fill in all fields'}
      onSubmit={() => signIn({ setup_code: code.trim(), email: email.trim(), password })}
      footer="The server printed the setup code when it first started. The code works once."
    >
      <TextField label="Setup code" value={code} onChange={setCode} autoComplete="off" isMono />
      <TextField label="E-mail" type="email" autoComplete="username" value={email} onChange={setEmail} />
      <NewPassword value={password} onChange={setPassword} />
    </EntryForm>
  )
}
