import { isApiError } from '@slipway/sdk'
import { useState } from 'react'
import { TextField } from '../../ui/field.tsx'

/**
 * Returns the fields of a sign-in form. The field for the authentication code appears when the service
 * requires one.
 */
export function useSignInFields(error: Error | null, knownEmail = '') {
  const [email, setEmail] = useState(knownEmail)
  const [password, setPassword] = useState('')
  const [totpCode, setTotpCode] = useState('')
  const [hasSecondFactor, setSecondFactor] = useState(false)
  const needsTotp = isApiError(error) && error.needsTotp
  if (needsTotp && !hasSecondFactor) setSecondFactor(true)
  const isFilled = email && password && (!hasSecondFactor || totpCode)
  return {
    credentials: { email: email.trim(), password, ...(totpCode && { totp_code: totpCode.trim() }) },
    error: needsTotp ? null : error,
    reason: isFilled ? undefined : 'Fill in all fields',
    fields: (
      <>
        <TextField
          label="E-mail"
          type="email"
          autoComplete="username"
          value={email}
          onChange={setEmail}
          readOnly={knownEmail !== ''}
          autoFocus={knownEmail === ''}
        />
        <TextField
          label="Password"
          type="password"
          autoComplete="current-password"
          value={password}
          onChange={setPassword}
          autoFocus={knownEmail !== ''}
        />
        {hasSecondFactor && (
          <TextField
            label="Authentication code"
            autoComplete="one-time-code"
            value={totpCode}
            onChange={setTotpCode}
            hint="Six digits from your authenticator app, or a recovery code."
            autoFocus
          />
        )}
      </>
    ),
  }
}
