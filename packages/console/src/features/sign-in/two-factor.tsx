import { type FormEvent, useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useMe } from '../../api/me.ts'
import { Button } from '../../ui/button.tsx'
import { Copyable, CopyButton } from '../../ui/copy.tsx'
import { ErrorNote } from '../../ui/error.tsx'
import { TextField } from '../../ui/field.tsx'
import { Section } from '../../ui/page.tsx'
import { QrCode } from '../../ui/qr-code.tsx'
import { SecretDialog } from '../../ui/secret.tsx'

const secretOf = (uri: string): string => new URL(uri).searchParams.get('secret') ?? ''
const inGroups = (secret: string): string => secret.replace(/(.{4})(?=.)/g, '$1 ')

/** Turns two-factor authentication on in two steps, or off. */
export function TwoFactor() {
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
    done: () => 'Two-factor authentication is on',
    invalidates: ['authSessionList', 'rootGet'],
    showsErrors: true,
  })
  const remove = useAction({
    run: () => client.authTotpRemove({ code: code.trim() }),
    done: () => 'Two-factor authentication is off',
    invalidates: ['authSessionList', 'rootGet'],
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
  /** Hides the set-up. A later set-up replaces its key. */
  const cancel = () => {
    confirm.reset()
    setUri('')
    setCode('')
    setPassword('')
  }
  const error = begin.error ?? confirm.error ?? remove.error
  return (
    <Section title="Two-factor authentication">
      <form onSubmit={submit} noValidate className="card flex max-w-md flex-col gap-4 p-4">
        {caller.has_totp && <p>On. You enter a code each time you sign in.</p>}
        {!uri && !caller.has_totp && (
          <p className="text-ink-muted">Off. When it is on, a stolen password is not enough to sign in.</p>
        )}
        {uri && (
          <div className="flex flex-col gap-2">
            <p>Scan this code with an authenticator app:</p>
            <QrCode text={uri} label="QR code for the key below" />
            <p>
              Or{' '}
              <a href={uri} className="link">
                open your authenticator app
              </a>
              , or enter the key:
            </p>
            {/* The whole key must be readable, so it wraps. */}
            <span className="inline-flex max-w-full items-center gap-1">
              <span className="mono min-w-0 break-words">{inGroups(secretOf(uri))}</span>
              <CopyButton text={secretOf(uri)} label="Copy the key" />
            </span>
            <p className="text-ink-muted">URI for password managers:</p>
            <Copyable text={uri} label="Copy the URI" />
            <p>Then enter the code from the app.</p>
          </div>
        )}
        {!uri && !caller.has_totp && (
          <TextField
            label="Confirm your password"
            type="password"
            autoComplete="current-password"
            value={password}
            onChange={setPassword}
          />
        )}
        {(uri || caller.has_totp) && (
          <TextField
            label={uri ? 'Code' : 'Code to turn it off'}
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
              reason={code ? undefined : 'Enter a code'}
              onClick={() => remove.mutate(undefined, { onSuccess: () => setCode('') })}
            >
              Turn off
            </Button>
          ) : (
            <Button
              type="submit"
              kind="primary"
              isBusy={begin.isPending || confirm.isPending}
              reason={(uri ? code : password) ? undefined : uri ? 'Enter the code' : 'Enter your password'}
            >
              {uri ? 'Confirm' : 'Set up'}
            </Button>
          )}
          {uri && <Button onClick={cancel}>Cancel</Button>}
        </div>
      </form>
      {recoveryCodes.length > 0 && (
        <SecretDialog
          title="Recovery codes"
          secret={recoveryCodes.join(' ')}
          note="Each recovery code works once instead of a code from the app. Store the codes in a safe place."
          ifLost="To get new codes, turn two-factor authentication off and on again."
          onClose={() => setRecoveryCodes([])}
        />
      )}
    </Section>
  )
}
