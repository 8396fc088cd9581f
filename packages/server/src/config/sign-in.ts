import { type Role, roles } from '@slipway/contract'
import {
  type Check,
  choice,
  envName,
  field,
  filledText,
  integer,
  listOf,
  optional,
  pattern,
  readSection,
  readTables,
  refuse,
  type Section,
} from './fields.ts'

/** Tokens must be encrypted in transit, unless they stay on this machine. */
const issuer: Check<string> = (value, key) => {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null
  const isLoopback = url !== null && ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname)
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback)
    ? (value as string)
    : refuse(key, value, 'must be an https URL, or an http URL on this machine')
}

const rolesByClaim: Check<Record<string, Role>> = (value, key) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refuse(key, value, 'must be a table, such as { ml = "member" }')
  const check = choice(roles)
  return Object.fromEntries(
    Object.entries(value).map(([claim, role]) => [claim, check(role, `${key}.${claim}`)]),
  )
}

export const signInSection = {
  session_days: field(integer(1, 3650), 30),
}

const oidcSection = {
  name: field(pattern(/^[a-z0-9][a-z0-9-]{0,38}$/, 'lower-case letters, digits and -')),
  issuer: field(issuer),
  client_id: field(filledText),
  client_secret_env: field(envName, ''),
  allowed_domains: field(listOf(pattern(/^[a-z0-9.-]+$/, 'a domain in lower case')), []),
  organization: field(optional(filledText), ''),
  role_claim: field(optional(filledText), ''),
  roles: field(rolesByClaim, {}),
  max_age_hours: field(integer(1, 8760), 24),
}

/** A single sign-on provider. `clientSecret` is '' for a public client. */
export type OidcConfig = Section<typeof oidcSection> & { clientSecret: string }

export function readOidc(value: unknown, secret: (key: string, variable: string) => string): OidcConfig[] {
  const names = new Set<string>()
  return readTables(value, 'oidc', (table, at) => {
    const provider = readSection(oidcSection, table, at)
    if (names.has(provider.name)) refuse(`${at}.name`, provider.name, 'is the name of another provider')
    names.add(provider.name)
    if (provider.organization && !provider.roleClaim)
      refuse(`${at}.organization`, provider.organization, 'requires role_claim and roles')
    return { ...provider, clientSecret: secret(`${at}.client_secret_env`, provider.clientSecretEnv) }
  })
}

const mailSection = {
  smtp_url_env: field(envName, 'SMTP_URL'),
  from: field(filledText),
}

/** `smtpUrl` may contain a password. */
export type MailConfig = Section<typeof mailSection> & { smtpUrl: string }

export function readMail(
  value: unknown,
  secret: (key: string, variable: string) => string,
): MailConfig | null {
  if (value === null) return null
  const mail = readSection(mailSection, value, 'mail')
  return { ...mail, smtpUrl: secret('mail.smtp_url_env', mail.smtpUrlEnv) }
}
