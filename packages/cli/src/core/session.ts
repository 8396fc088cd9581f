import { resumeSession, type SessionTokens, type TokenSource } from '@slipway/sdk'
import { changeContext, readContexts } from './contexts.ts'
import { lightFetch } from './fetch.ts'
import type { Settings } from './settings.ts'

/** Returns the token source of a context with a password login. It saves refreshed tokens in the file. */
export function storedSession(settings: Settings, env: NodeJS.ProcessEnv): TokenSource | undefined {
  const { contextName } = settings
  const first = settings.context?.session
  if (!first || !contextName) return undefined
  const store = (session: SessionTokens) =>
    changeContext(env, contextName, (context) => context && { ...context, session })
  return async (rejected) => {
    // Another process may have refreshed the session in the meantime, and a refresh token works only once.
    const session = readContexts(env).contexts[contextName]?.session ?? first
    return resumeSession({ baseUrl: settings.apiUrl, fetch: lightFetch, onTokens: store }, session).token(
      rejected,
    )
  }
}
