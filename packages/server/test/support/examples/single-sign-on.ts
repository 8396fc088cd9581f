import { clientSecret, startOidcStand } from '@slipway/testing/oidc-stand.ts'
import { onTestFinished } from 'vitest'
import type { Recorder } from './recorder.ts'

/** Links an identity of a provider to Ada's account, and unlinks it. Returns the provider's URL. */
export async function recordSingleSignOn(
  { service, ok, recording }: Recorder,
  token: string,
): Promise<string> {
  const stand = await startOidcStand(() => `${service.url}/v0.1/auth/oidc/company/callback`)
  onTestFinished(() => stand.close())
  stand.account = { sub: '248289761001', email: 'ada@example.com', email_verified: true, groups: [] }
  service.server.services.config.oidc.push({
    ...{ name: 'company', issuer: stand.issuer, clientId: 'slipway', clientSecretEnv: 'X', clientSecret },
    ...{ allowedDomains: [], organization: '', roleClaim: '', roles: {}, maxAgeHours: 24 },
  })
  await ok('authOidcList', { token: null })
  const link = await service.call('authOidcLink', { token, params: { provider: 'company' } })
  recording.routes.authOidcLink = { response: link.body }
  const cookies = new Map(link.headers.getSetCookie().map(pairOf))
  await visit(link.body.url, cookies)
  await ok('authIdentityList', { token })
  await ok('authOidcUnlink', { token, params: { provider: 'company' } })
  return stand.issuer
}

const pairOf = (line: string): [string, string] => {
  const pair = line.split(';')[0]!
  return [pair.split('=')[0]!, pair]
}

/** Follows redirects with cookies, as a browser does, until a page is shown. */
async function visit(start: string, cookies: Map<string, string>) {
  let url = new URL(start)
  for (;;) {
    const headers = { cookie: [...cookies.values()].join('; ') }
    const answer = await fetch(url, { redirect: 'manual', headers })
    for (const line of answer.headers.getSetCookie()) cookies.set(...pairOf(line))
    const location = answer.headers.get('location')
    if (!location) return
    url = new URL(location, url)
  }
}
