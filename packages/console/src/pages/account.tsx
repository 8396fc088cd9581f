import { type FormEvent, useState } from 'react'
import { useAction } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { useMe } from '../api/me.ts'
import { Identities } from '../features/sign-in/identities.tsx'
import { Sessions } from '../features/sign-in/sessions.tsx'
import { TwoFactor } from '../features/sign-in/two-factor.tsx'
import { Button } from '../ui/button.tsx'
import { Copyable } from '../ui/copy.tsx'
import { ErrorNote } from '../ui/error.tsx'
import { TextField } from '../ui/field.tsx'
import { Facts, Page, Section } from '../ui/page.tsx'

export function Account() {
  const { caller, organizations } = useMe()
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const change = useAction({
    run: () => client.authPassword({ current_password: current, new_password: next }),
    done: () => 'Password changed. Other sessions were signed out.',
    showsErrors: true,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change.mutate(undefined, {
      onSuccess: () => {
        setCurrent('')
        setNext('')
      },
    })
  }
  return (
    <Page title="Account">
      <Facts
        items={[
          ['E-mail', caller.email],
          ['User ID', <Copyable key="id" text={caller.id} />],
          ['Organizations', organizations.map(({ name }) => name).join(', ') || 'none'],
          ...(caller.is_operator ? ([['Operator', 'yes']] as [string, string][]) : []),
        ]}
      />
      <Section title="Password">
        <form onSubmit={submit} noValidate className="card flex max-w-md flex-col gap-4 p-4">
          <input type="text" autoComplete="username" value={caller.email} readOnly hidden />
          <TextField
            label="Current password"
            type="password"
            autoComplete="current-password"
            value={current}
            onChange={setCurrent}
          />
          <TextField
            label="New password"
            type="password"
            autoComplete="new-password"
            value={next}
            onChange={setNext}
            hint="At least 8 characters. All other sessions will be signed out."
          />
          {change.error && <ErrorNote error={change.error} />}
          <div>
            <Button
              type="submit"
              kind="primary"
              isBusy={change.isPending}
              reason={
                current && next.length >= 8
                  ? undefined
                  : 'Enter your current password and a new one of at least 8 characters'
              }
            >
              Change password
            </Button>
          </div>
        </form>
      </Section>
      <TwoFactor />
      <Identities />
      <Sessions />
    </Page>
  )
}
