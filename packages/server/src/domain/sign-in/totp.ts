import { randomBytes } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'

const stepSeconds = 30
/** Accepts the previous and the next code too, because clocks differ and typing takes time. */
const stepsOff = 1
const recoveryCodes = 10
const recoveryAlphabet = 'abcdefghijkmnpqrstuvwxyz23456789'

const totpOf = (secret: string, label = '') =>
  new TOTP({ issuer: 'Slipway', label, secret: Secret.fromBase32(secret), period: stepSeconds })

export const newTotpSecret = (): string => new Secret({ size: 20 }).base32

export const totpUri = (secret: string, email: string): string => totpOf(secret, email).toString()

/** Returns the time step that the code belongs to, or null for a wrong code. */
export function totpStep(secret: string, code: string, now: Date): number | null {
  if (!/^[0-9]{6}$/.test(code)) return null
  const delta = totpOf(secret).validate({ token: code, timestamp: now.getTime(), window: stepsOff })
  return delta === null ? null : Math.floor(now.getTime() / 1000 / stepSeconds) + delta
}

/** Each code has 80 random bits, in letters and digits that cannot be confused with each other. */
export const newRecoveryCodes = (): string[] =>
  Array.from({ length: recoveryCodes }, () =>
    Array.from(randomBytes(16), (byte) => recoveryAlphabet[byte % recoveryAlphabet.length])
      .join('')
      .replace(/.{4}(?!$)/g, '$&-'),
  )

/** Returns the form in which codes are compared: in lower case, without separators. */
export const normalizeRecoveryCode = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]/g, '')
