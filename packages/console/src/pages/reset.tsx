import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useAction } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { codeFromLink, EntryForm, isTooShort, NewPassword } from '../features/entry-form.tsx'
import { TextField } from '../ui/field.tsx'

/** Sets a new password with the code from a reset link. */
export function Reset() {
  const navigate = useNavigate()
  const [code] = useState(codeFromLink)
  const [password, setPassword] = useState('')
  const reset = useAction({
    run: () => client.authReset({ code, password }),
    done: () => 'Password changed. Sign in with the new password.',
    showsErrors: true,
  })
  return (
    <EntryForm
      title="Set a new password"
      action="Set password"
      isBusy={reset.isPending}
      error={reset.error}
      reason={
        code && !isTooShort(password) ? undefined : 'Open the link from the e-mail and enter a new password'
      }
      onSubmit={() => reset.mutate(undefined, { onSuccess: () => void navigate({ to: '/sign-in' }) })}
      footer="All sessions will be signed out. Two-factor authentication will stay on."
    >
      <NewPassword value={password} onChange={setPassword} />
    </EntryForm>
  )
}

export function Forgot() {
  const [email, setEmail] = useState('')
  const forgot = useAction({
    run: () => client.authForgot({ email: email.trim() }),
    done: () => '',
    showsErrors: true,
  })
  return (
    <EntryForm
      title="Forgot your password?"
      action="Send reset link"
      isBusy={forgot.isPending}
      error={forgot.error}
      reason={email ? undefined : 'Enter your e-mail address'}
      onSubmit={() => forgot.mutate(undefined)}
      note={forgot.isSuccess ? 'If this address has an account, we sent it a reset link.' : ''}
      footer={
        <>
          You can also ask your operator for a reset link.
          <br />
          <Link to="/sign-in" className="link">
            Back to sign-in
          </Link>
        </>
      }
    >
      <TextField
        label="E-mail"
        type="email"
        autoComplete="username"
        value={email}
        onChange={setEmail}
        autoFocus
      />
    </EntryForm>
  )
}
