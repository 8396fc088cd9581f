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

/** Values that must match when the browser comes back. */
export interface OidcFlow {
  state: string
  nonce: string
  verifier: string
}

/** The identity that the provider confirms. */
export interface OidcIdentity {
  issuer: string
  subject: string
  email: string
  isEmailVerified: boolean
  /** True if the user signed in to the provider with a second factor. */
  hasSecondFactor: boolean
  /** The values of the claim that `role_claim` names. */
  roleClaims: string[]
}

/**
 * Reads the provider's metadata and keys at each sign-in, so that rotated keys work at once. The signature is verified
 * although the token comes from the provider over TLS.
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

/** Throws unless the response belongs to this flow, and the token is genuine, for this service and not expired. */
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
