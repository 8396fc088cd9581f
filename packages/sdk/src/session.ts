import type { TokenResponse } from '@slipway/contract'
import { callRoute } from './call.ts'
import { type ClientOptions, createTransport } from './transport.ts'

export interface SessionTokens {
  accessToken: string
  refreshToken: string
  /** Milliseconds since 1970, by the clock of this computer. */
  expiresAt: number
}

export interface Session {
  /**
   * Returns the access token, after a refresh if the token expires soon or was rejected. Pass this function to
   * `createClient` as `token`.
   */
  token(rejected?: string): Promise<string>
  tokens(): SessionTokens
  /** Ends the session on the server. */
  revoke(): Promise<void>
}

export interface SessionOptions extends Omit<ClientOptions, 'token'> {
  /**
   * Called with each new pair of tokens. A refresh token works once, so the program must store the newest
   * pair.
   */
  onTokens?: ((tokens: SessionTokens) => void | Promise<void>) | undefined
}

const refreshEarlyMs = 60_000

/**
 * Exchanges an e-mail address and a password for a session.
 *
 * @example
 * ```ts
 * const session = await logIn({ baseUrl, email, password })
 * const mine = createClient({ baseUrl, token: session.token })
 * log((await mine.rootGet()).caller.email)
 * await session.revoke()
 * ```
 */
export async function logIn(
  options: SessionOptions & { email: string; password: string; totpCode?: string },
): Promise<Session> {
  const { email, password, totpCode } = options
  const response = await callRoute(createTransport(options), 'authToken', {
    body: { grant_type: 'password', email, password, ...(totpCode && { totp_code: totpCode }) },
  })
  const tokens = toTokens(response)
  await options.onTokens?.(tokens)
  return resumeSession(options, tokens)
}

/** Continues a session with stored tokens. */
export function resumeSession(options: SessionOptions, stored: SessionTokens): Session {
  const transport = createTransport(options)
  let tokens = stored
  let refreshing: Promise<string> | undefined

  async function refresh(): Promise<string> {
    const response = await callRoute(transport, 'authToken', {
      body: { grant_type: 'refresh_token', refresh_token: tokens.refreshToken },
    })
    tokens = toTokens(response)
    await options.onTokens?.(tokens)
    return tokens.accessToken
  }

  return {
    async token(rejected) {
      const isUsable = tokens.accessToken !== rejected && Date.now() < tokens.expiresAt - refreshEarlyMs
      if (isUsable) return tokens.accessToken
      // Concurrent calls share one refresh, because a second use of the refresh token would end the session.
      refreshing ??= refresh().finally(() => {
        refreshing = undefined
      })
      return refreshing
    },
    tokens: () => tokens,
    async revoke() {
      await callRoute(transport, 'authRevoke', { body: { refresh_token: tokens.refreshToken } })
    },
  }
}

function toTokens(response: TokenResponse): SessionTokens {
  return {
    accessToken: response.access_token,
    refreshToken: response.refresh_token,
    expiresAt: Date.now() + response.expires_in * 1000,
  }
}
