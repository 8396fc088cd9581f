import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client'
import type { OidcConfig } from '../config/index.ts'

const timeoutS = 10

/** What has to be the same when the browser comes back. */
export interface OidcFlow {
  state: string
  nonce: string
  verifier: string
}

/** Whom the provider vouches for. */
export interface OidcIdentity {
  issuer: string
  subject: string
  email: string
  isEmailVerified: boolean
  /** The provider saw a second factor. */
  hasSecondFactor: boolean
  /** What the claim of roles holds. */
  roleClaims: string[]
}

/**
 * The provider's metadata and keys are read at each sign-in: that is rare, and a key that was rotated a moment ago is
 * known at once. The signature is checked although the token comes over TLS from the provider itself.
 */
function discover(provider: OidcConfig): Promise<Configuration> {
  const issuer = new URL(provider.issuer)
  const execute = [enableNonRepudiationChecks]
  if (issuer.protocol === 'http:') execute.push(allowInsecureRequests)
  return discovery(issuer, provider.clientId, provider.clientSecret || undefined, undefined, {
    execute,
    timeout: timeoutS,
  })
}

export async function beginOidc(
  provider: OidcConfig,
  redirectUri: string,
): Promise<{ url: string; flow: OidcFlow }> {
  const flow = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() }
  const url = buildAuthorizationUrl(await discover(provider), {
    redirect_uri: redirectUri,
    scope: 'openid email profile',
    state: flow.state,
    nonce: flow.nonce,
    code_challenge: await calculatePKCECodeChallenge(flow.verifier),
    code_challenge_method: 'S256',
  })
  return { url: url.href, flow }
}

/** Throws unless the answer belongs to this flow and the token is genuine, for us, and of now. */
export async function finishOidc(
  provider: OidcConfig,
  returnedUrl: URL,
  flow: OidcFlow,
): Promise<OidcIdentity> {
  const config = await discover(provider)
  const tokens = await authorizationCodeGrant(config, returnedUrl, {
    pkceCodeVerifier: flow.verifier,
    expectedState: flow.state,
    expectedNonce: flow.nonce,
    idTokenExpected: true,
  })
  const token = tokens.claims()!
  const info = config.serverMetadata().userinfo_endpoint
    ? await fetchUserInfo(config, tokens.access_token, token.sub)
    : {}
  const claims: Record<string, unknown> = { ...info, ...token }
  const roleClaims = provider.roleClaim ? claims[provider.roleClaim] : undefined
  return {
    issuer: token.iss,
    subject: token.sub,
    email: typeof claims.email === 'string' ? claims.email.toLowerCase() : '',
    isEmailVerified: claims.email_verified === true,
    hasSecondFactor: Array.isArray(token.amr) && token.amr.includes('mfa'),
    roleClaims: [roleClaims].flat().filter((value) => typeof value === 'string'),
  }
}
