import { type FormEvent, useState } from 'react'
import { useAction } from '../api/actions.ts'
import { client } from '../api/client.ts'
import { useMe } from '../api/me.ts'
import { Button } from '../ui/button.tsx'
import { Copyable } from '../ui/copy.tsx'
import { ErrorNote } from '../ui/error.tsx'
import { TextField } from '../ui/field.tsx'
import { Section } from '../ui/page.tsx'
import { QrCode } from '../ui/qr-code.tsx'
import { SecretDialog } from '../ui/secret.tsx'

const secretOf = (uri: string): string => new URL(uri).searchParams.get('secret') ?? ''
const inGroups = (secret: string): string => secret.replace(/(.{4})(?=.)/g, '$1 ')

/** Sets a second factor up in two steps, or removes it. */
export function SecondFactor() {
  const { caller } = useMe()
  const [password, setPassword] = useState('')
  const [uri, setUri] = useState('')
  const [code, setCode] = useState('')
  const [recoveryCodes, setRecoveryCodes] = useState<string[]>([])
  const begin = useAction({
    run: () => client.authTotpCreate({ current_password: password }),
    done: () => '',
    showsErrors: true,
  })
  const confirm = useAction({
    run: () => client.authTotpConfirm({ code: code.trim() }),
    done: () => 'The second factor is set up',
    touches: ['authSessionList', 'rootGet'],
    showsErrors: true,
  })
  const remove = useAction({
    run: () => client.authTotpRemove({ code: code.trim() }),
    done: () => 'The second factor is removed',
    touches: ['authSessionList', 'rootGet'],
    showsErrors: true,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!uri) return begin.mutate(undefined, { onSuccess: ({ otpauth_uri }) => setUri(otpauth_uri) })
    confirm.mutate(undefined, {
      onSuccess: ({ recovery_codes }) => {
        setRecoveryCodes(recovery_codes)
        setUri('')
        setCode('')
        setPassword('')
      },
    })
  }
  const error = begin.error ?? confirm.error ?? remove.error
  return (
    <Section title="Second factor">
      <form onSubmit={submit} noValidate className="card flex max-w-md flex-col gap-4 p-4">
        {caller.has_totp && <p>It is set up: signing in asks for a code.</p>}
        {!uri && !caller.has_totp && (
          <p className="text-ink-muted">
            None is set up. With a second factor, a stolen password is not enough to sign in.
          </p>
        )}
        {uri && (
          <div className="flex flex-col gap-2">
            <p>Scan this with an authenticator, such as the one on your phone:</p>
            <QrCode text={uri} label="QR code of the key; the same key stands below" />
            <p>
              Or{' '}
              <a href={uri} className="link">
                open it in the authenticator of this device
              </a>
              , or type the key:
            </p>
            <Copyable text={secretOf(uri)} shown={inGroups(secretOf(uri))} label="Copy the key" />
            <p className="text-ink-muted">As an address, for password managers:</p>
            <Copyable text={uri} label="Copy the address" />
            <p>Then type the code that it shows.</p>
          </div>
        )}
        {!uri && !caller.has_totp && (
          <TextField
            label="Password, to set one up"
            type="password"
            autoComplete="current-password"
            value={password}
            onChange={setPassword}
          />
        )}
        {(uri || caller.has_totp) && (
          <TextField
            label={uri ? 'Code' : 'Code, to remove it'}
            autoComplete="one-time-code"
            value={code}
            onChange={setCode}
          />
        )}
        {error && <ErrorNote error={error} />}
        <div className="flex gap-2">
          {caller.has_totp ? (
            <Button
              kind="danger"
              isBusy={remove.isPending}
              reason={code ? undefined : 'Type a code first'}
              onClick={() => remove.mutate(undefined, { onSuccess: () => setCode('') })}
            >
              Remove
            </Button>
          ) : (
            <Button
              type="submit"
              kind="primary"
              isBusy={begin.isPending || confirm.isPending}
              reason={(uri ? code : password) ? undefined : 'Fill in the field first'}
            >
              {uri ? 'Confirm' : 'Set up'}
            </Button>
          )}
        </div>
      </form>
      {recoveryCodes.length > 0 && (
        <SecretDialog
          title="Recovery codes"
          secret={recoveryCodes.join(' ')}
          note="Each stands in for the second factor once. Keep them where you keep nothing else."
          ifLost="Setting the second factor up again makes new ones."
          onClose={() => setRecoveryCodes([])}
        />
      )}
    </Section>
  )
}
