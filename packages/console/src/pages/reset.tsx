import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useAction } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { codeOfLink, EntryForm, NewPassword, tooShort } from '../features/entry-form.tsx'
import { TextField } from '../ui/field.tsx'

/** A new password by the code of a link. */
export function Reset() {
  const navigate = useNavigate()
  const [code] = useState(codeOfLink)
  const [password, setPassword] = useState('')
  const reset = useAction({
    run: () => client.authReset({ code, password }),
    done: () => 'The password is set: sign in with it',
    showsErrors: true,
  })
  return (
    <EntryForm
      title="Set a new password"
      action="Set password"
      isBusy={reset.isPending}
      error={reset.error}
      reason={
        code && !tooShort(password) ? undefined : 'Open the link that you were sent, and choose a password'
      }
      onSubmit={() => reset.mutate(undefined, { onSuccess: () => void navigate({ to: '/sign-in' }) })}
      footer="All sessions end. A second factor stays."
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
      title="Forgot the password"
      action="Send a link"
      isBusy={forgot.isPending}
      error={forgot.error}
      reason={email ? undefined : 'Give your e-mail address'}
      onSubmit={() => forgot.mutate(undefined)}
      note={forgot.isSuccess ? 'If the address has an account, a link is on its way.' : ''}
      footer="An operator can make a link, too."
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
