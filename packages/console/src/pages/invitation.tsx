import { isApiError } from '@slipway/sdk'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useAction } from '../api/actions.ts'
import { client, queryClient } from '../api/client.ts'
import { session } from '../api/session.ts'
import { useQuery } from '../api/use-query.ts'
import {
  codeFromLink,
  EntryForm,
  EntryFrame,
  isTooShort,
  minPasswordLength,
  NewPassword,
  useSignIn,
} from '../features/entry-form.tsx'
import { Button, ButtonLink } from '../ui/button.tsx'
import { ErrorNote } from '../ui/error.tsx'
import { TextField } from '../ui/field.tsx'
import { NoBreak } from '../ui/no-break.tsx'

/** Accepts an invitation with a new account, or with the account that is signed in. */
export function Accept() {
  const { signIn, error, isBusy } = useSignIn()
  const navigate = useNavigate()
  const [linkedCode] = useState(codeFromLink)
  const [code, setCode] = useState(linkedCode)
  const [email, setEmail] = useState<string | null>(null)
  const [password, setPassword] = useState('')
  const invitation = useQuery({
    queryKey: ['authInvitation', linkedCode],
    queryFn: () => client.authInvitation({ code: linkedCode }),
    enabled: linkedCode !== '',
  })
  // Without a session, the response is 401. That is not an error here.
  const signedIn = useQuery({
    queryKey: ['signedInAs'],
    queryFn: () =>
      session.token().then(
        async () => (await client.rootGet()).caller.email,
        () => '',
      ),
  })
  const join = useAction({
    run: () => client.authAccept({ code: code.trim() }),
    done: () => 'Invitation accepted',
    showsErrors: true,
  })
  const invited = invitation.data
  if (isApiError(invitation.error) && invitation.error.code === 'invalid_grant') return <InvalidInvitation />
  return (
    <EntryForm
      title="Accept invitation"
      action="Set password and sign in"
      isBusy={isBusy}
      error={error ?? invitation.error}
      reason={
        !code.trim()
          ? 'Enter the code from the invitation'
          : isTooShort(password)
            ? `Enter a password of at least ${minPasswordLength} characters`
            : undefined
      }
      onSubmit={() => signIn({ code: code.trim(), password, ...(email && { email: email.trim() }) })}
      note={invited ? invitationText(invited) : ''}
      footer="The link works once. Already have an account? Sign in, then reopen this link."
    >
      {signedIn.data && code && (
        <>
          <Button
            isBusy={join.isPending}
            onClick={() =>
              join.mutate(undefined, {
                onSuccess: () => {
                  queryClient.clear()
                  void navigate({ to: '/', replace: true })
                },
              })
            }
          >
            Accept as {signedIn.data}
          </Button>
          {join.error && <ErrorNote error={join.error} />}
        </>
      )}
      {!linkedCode && <TextField label="Code" value={code} onChange={setCode} autoComplete="off" isMono />}
      {invited && (
        <TextField
          label="E-mail"
          type="email"
          autoComplete="username"
          value={email ?? invited.email}
          onChange={setEmail}
        />
      )}
      <NewPassword value={password} onChange={setPassword} />
    </EntryForm>
  )
}

function InvalidInvitation() {
  return (
    <EntryFrame footer="An invitation link works once and expires after seven days, or when it is withdrawn or replaced.">
      <section className="card flex w-full max-w-sm flex-col gap-4 p-6">
        <h1 className="text-lg font-semibold">This invitation no longer works</h1>
        <p className="text-ink-muted">
          If you already accepted it, sign in. Otherwise, check for a newer invitation{' '}
          <NoBreak>e-mail,</NoBreak> or ask for a new link.
        </p>
        <ButtonLink kind="primary" to="/sign-in" className="w-full">
          Sign in
        </ButtonLink>
      </section>
    </EntryFrame>
  )
}

function invitationText(invited: {
  organization_name: string
  role: string
  is_operator: boolean
  invited_by: string
  email: string
}) {
  const grants = [
    ...(invited.organization_name ? [`${invited.role} of ${invited.organization_name}`] : []),
    ...(invited.is_operator ? ['operator of this service'] : []),
  ]
  const who = invited.invited_by || 'An operator'
  const what = grants.length > 0 ? ` as ${grants.join(' and ')}` : ''
  return `${who} invited you${what}. The invitation is for ${invited.email || 'anyone with this link'}.`
}
