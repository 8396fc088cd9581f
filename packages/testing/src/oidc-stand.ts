import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose'
import Provider from 'oidc-provider'

export interface Account {
  sub: string
  email?: string
  email_verified?: boolean
  groups?: string[]
}

/**
 * A real OpenID provider on loopback. It signs in every user as `account`, and can be made to issue invalid
 * tokens.
 */
export interface OidcStand {
  issuer: string
  account: Account
  /** Claims that replace those of the ID token, signed with the provider's own key. */
  claims: Record<string, unknown>
  /** True if a sign-in also returns a refresh token. */
  givesRefreshTokens: boolean
  /** How often a refresh token was used. */
  refreshes: number
  /** True if the account was deleted: the provider no longer confirms its tokens. */
  isGone: boolean
  /** True if every request fails, as if the provider were down. */
  isDown: boolean
  /** Signs with a new key from now on; the previous key is no longer published. */
  rotateKey(): Promise<void>
  close(): Promise<void>
}

const clientId = 'slipway'
export const clientSecret = 'a shared client secret that is long enough'

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: crypto.randomUUID() }
}

export async function startOidcStand(redirectUri: () => string): Promise<OidcStand> {
  let key = await newKey()
  let handle: ReturnType<Provider['callback']> | null = null
  // The provider is created at the first request, when the redirect URL is known.
  const server: Server = createServer((request, response) => {
    if (stand.isDown) return void response.writeHead(503).end()
    handle ??= begin()
    void handle(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const stand: OidcStand = {
    issuer,
    account: { sub: 'nobody' },
    claims: {},
    givesRefreshTokens: false,
    refreshes: 0,
    isGone: false,
    isDown: false,
    async rotateKey() {
      key = await newKey()
      handle = null
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }

  function begin(): ReturnType<Provider['callback']> {
    const provider = new Provider(issuer, {
      clients: [
        {
          client_id: clientId,
          client_secret: clientSecret,
          redirect_uris: [redirectUri()],
          grant_types: ['authorization_code', 'refresh_token'],
        },
      ],
      jwks: { keys: [key] as never },
      cookies: { keys: ['test'] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['groups'] },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
      pkce: { required: () => true },
      issueRefreshToken: () => stand.givesRefreshTokens,
      rotateRefreshToken: true,
      findAccount: (_context, sub) =>
        stand.isGone ? undefined : { accountId: sub, claims: async () => ({ ...stand.account, sub }) },
      async loadExistingGrant(context) {
        const grant = new context.oidc.provider.Grant({
          clientId,
          accountId: context.oidc.session!.accountId!,
        })
        grant.addOIDCScope('openid email profile')
        await grant.save()
        return grant
      },
    })
    provider.use(async (context, next) => {
      if (context.path.startsWith('/interaction/')) {
        const login = { accountId: stand.account.sub }
        await provider.interactionFinished(context.req, context.res, { login })
        context.respond = false
        return
      }
      await next()
      if (context.oidc?.params?.grant_type === 'refresh_token') stand.refreshes++
      const body = context.body as { id_token?: string } | undefined
      if (context.path === '/token' && body?.id_token && Object.keys(stand.claims).length > 0) {
        const payload = JSON.parse(Buffer.from(body.id_token.split('.')[1]!, 'base64url').toString())
        body.id_token = await new SignJWT({ ...payload, ...stand.claims })
          .setProtectedHeader({ alg: 'RS256', kid: key.kid! })
          .sign(await importJWK(key, 'RS256'))
      }
    })
    return provider.callback()
  }
  return stand
}
