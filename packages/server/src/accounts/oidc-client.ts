import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  ResponseBodyError,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  refreshTokenGrant,
  WWWAuthenticateChallengeError,
} from 'openid-client'
import type { OidcConfig } from '../config/index.ts'

const timeoutS = 10

/** Values that must match when the browser returns. */
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
  tokens: ProviderTokens
}

/** The tokens that the provider issued at sign-in, which are used to query the provider later. */
export interface ProviderTokens {
  issuer: string
  subject: string
  accessToken: string
  /** When the access token expires, in milliseconds since 1970; the time of issue if the provider set no expiry. */
  accessUntil: number
  /** Empty if the provider gave none. */
  refreshToken: string
}

/**
 * Reads the provider's metadata and keys at each sign-in, so that rotated keys work immediately. The
 * signature of the ID token is verified, although the token comes from the provider over TLS.
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
  return {
    issuer: token.iss,
    subject: token.sub,
    email: typeof claims.email === 'string' ? claims.email.toLowerCase() : '',
    isEmailVerified: claims.email_verified === true,
    hasSecondFactor: Array.isArray(token.amr) && token.amr.includes('mfa'),
    roleClaims: roleClaimsOf(provider, claims),
    tokens: tokensOf({ issuer: token.iss, subject: token.sub }, tokens),
  }
}

function roleClaimsOf({ roleClaim }: OidcConfig, claims: Record<string, unknown>): string[] {
  const given = roleClaim ? claims[roleClaim] : undefined
  return [given].flat().filter((value) => typeof value === 'string')
}

type TokenSet = Awaited<ReturnType<typeof refreshTokenGrant>>

const tokensOf = (
  { issuer, subject }: Pick<ProviderTokens, 'issuer' | 'subject'>,
  tokens: TokenSet,
  refreshToken = '',
): ProviderTokens => ({
  issuer,
  subject,
  accessToken: tokens.access_token,
  accessUntil: Date.now() + (tokens.expiresIn() ?? 0) * 1000,
  refreshToken: tokens.refresh_token ?? refreshToken,
})

/**
 * `claims`: the current role claims; `refused` if the provider no longer confirms the user; `unknown` if this
 * could not be determined.
 */
export interface Confirmation {
  tokens: ProviderTokens
  claims: string[] | 'refused' | 'unknown'
}

/**
 * Queries the provider again about a user who signed in earlier: redeems the refresh token, if there is one,
 * and reads the userinfo endpoint.
 */
export async function confirmIdentity(provider: OidcConfig, known: ProviderTokens): Promise<Confirmation> {
  const { subject, refreshToken } = known
  let tokens = known
  try {
    const config = await discover(provider)
    const renewed = refreshToken ? await refreshTokenGrant(config, refreshToken) : undefined
    if (renewed) tokens = tokensOf(known, renewed, refreshToken)
    const token = renewed?.claims()
    if (token && token.sub !== subject) return { tokens, claims: 'refused' }
    const info = config.serverMetadata().userinfo_endpoint
      ? await fetchUserInfo(config, tokens.accessToken, subject)
      : {}
    const claims: Record<string, unknown> = { ...info, ...token }
    // Without a new ID token, a missing claim may be one that only ID tokens have.
    const isComplete = token !== undefined || provider.roleClaim in claims
    return { tokens, claims: isComplete ? roleClaimsOf(provider, claims) : 'unknown' }
  } catch (error) {
    return { tokens, claims: isRefusal(error, tokens) ? 'refused' : 'unknown' }
  }
}

/** An expired access token is not a reason to end a session. */
const isRefusal = (error: unknown, { accessUntil }: ProviderTokens): boolean =>
  (error instanceof ResponseBodyError && error.error === 'invalid_grant') ||
  (error instanceof WWWAuthenticateChallengeError && error.status === 401 && accessUntil > Date.now())
