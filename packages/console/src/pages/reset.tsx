import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useAction } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { useSendsMail } from '../api/me.ts'
import { codeFromLink, EntryForm, EntryFrame, isTooShort, NewPassword } from '../features/entry-form.tsx'
import { TextField } from '../ui/field.tsx'
import { NoBreak } from '../ui/no-break.tsx'

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
      footer={
        <>
          All sessions will be signed out. <NoBreak>Two-factor</NoBreak> authentication does not change.
        </>
      }
    >
      <NewPassword value={password} onChange={setPassword} autoFocus />
    </EntryForm>
  )
}

export function Forgot() {
  const [email, setEmail] = useState('')
  const sendsMail = useSendsMail()
  const forgot = useAction({
    run: () => client.authForgot({ email: email.trim() }),
    done: () => '',
    showsErrors: true,
  })
  if (sendsMail === false) return <AskForLink />
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
          <BackToSignIn />
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

/** Shown if the service sends no e-mail. */
const AskForLink = () => (
  <EntryFrame footer={<BackToSignIn />}>
    <section className="card flex w-full max-w-sm flex-col gap-4 p-6">
      <h1 className="text-lg font-semibold">Forgot your password?</h1>
      <p>
        This service does not send e-mail. Ask the operator of the service for a reset link. The link is valid
        for one hour.
      </p>
    </section>
  </EntryFrame>
)

const BackToSignIn = () => (
  <Link to="/sign-in" className="link">
    Back to sign-in
  </Link>
)
