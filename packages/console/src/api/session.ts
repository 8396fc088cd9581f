import { ApiError, type ApiErrorBody } from '@slipway/sdk'

/**
 * The page keeps the access token in memory only. The refresh token is in a cookie that scripts cannot read
 * and that is sent only to this path.
 */
const path = '/_console/session'
const refreshEarlyMs = 60_000

let access = { token: '', expiresAt: 0 }
let refreshing: Promise<string> | undefined
/** After a session has expired, no request is sent until the next sign-in. */
let hasExpired = false
const endListeners = new Set<(how: SessionEnd) => void>()
const otherTabs = new BroadcastChannel('slipway-session')
otherTabs.onmessage = (message) => {
  if (message.data === 'signed-out') end('signed-out')
}

/** How a session ended. */
export type SessionEnd = 'signed-out' | 'expired'

export type SignIn =
  | { email: string; password: string; totp_code?: string }
  | { setup_code: string; email: string; password: string }
  | { code: string; password: string; email?: string }

export const session = {
  /** Returns a valid access token for the client. */
  token(rejected?: string): Promise<string> {
    const isUsable = access.token !== rejected && Date.now() < access.expiresAt - refreshEarlyMs
    if (isUsable && access.token) return Promise.resolve(access.token)
    if (hasExpired) return Promise.reject(expiredError())
    refreshing ??= refresh().finally(() => {
      refreshing = undefined
    })
    return refreshing
  },

  isOpen: () => access.token !== '',

  async signIn(credentials: SignIn): Promise<void> {
    await requestToken('POST', credentials)
    hasExpired = false
  },

  async signOut(): Promise<void> {
    await send('DELETE')
    otherTabs.postMessage('signed-out')
    end('signed-out')
  },

  /** Calls the listener when the session ends, in this tab or another. */
  onEnd(listener: (how: SessionEnd) => void): () => void {
    endListeners.add(listener)
    return () => endListeners.delete(listener)
  },
}

async function refresh(): Promise<string> {
  try {
    return await requestToken('POST')
  } catch (error) {
    const wasOpen = access.token !== ''
    if (wasOpen && error instanceof ApiError && error.code === 'unauthenticated') end('expired')
    throw error
  }
}

export function end(how: SessionEnd): void {
  access = { token: '', expiresAt: 0 }
  hasExpired = how === 'expired'
  for (const listener of endListeners) listener(how)
}

const expiredError = () =>
  new ApiError({ code: 'unauthenticated', message: 'Your session has ended.', status: 401 })

async function requestToken(method: string, body?: SignIn): Promise<string> {
  const response = await send(method, body)
  const result = (await response.json()) as { access_token: string; expires_in: number }
  access = { token: result.access_token, expiresAt: Date.now() + result.expires_in * 1000 }
  return access.token
}

async function send(method: string, body?: SignIn): Promise<Response> {
  let response: Response
  try {
    response = await fetch(path, {
      method,
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
  } catch (cause) {
    throw new ApiError({
      code: 'connection_failed',
      message: 'Slipway is not responding. It may be restarting. Try again in a moment.',
      cause,
    })
  }
  if (response.ok) return response
  const result = (await response.json().catch(() => ({}))) as Partial<ApiErrorBody>
  throw new ApiError({
    code: result.code ?? 'unexpected_answer',
    message: result.message ?? `Slipway responded with status ${response.status}.`,
    status: response.status,
    requestId: result.request_id ?? response.headers.get('x-request-id') ?? '',
    details: Array.isArray(result.details) ? result.details : [],
    needsTotp: result.error_description === 'totp_required',
  })
}
