import { lookup } from 'node:dns/promises'
import { type ClientRequest, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'

const mostAnswerBytes = 64 * 1024

/** All addresses of a name. */
export type Resolve = (hostname: string) => Promise<string[]>

const resolveBySystem: Resolve = async (hostname) =>
  (await lookup(hostname, { all: true, verbatim: true })).map(({ address }) => address)

export interface Outcome {
  /** 0 when there was no answer. */
  status: number
  /** Empty on success. */
  error: string
}

export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '')

/**
 * Posts to where tenants point us, without becoming their way into our network. The name is resolved here, the
 * addresses are checked, and the connection goes to a checked address: a name that changes its mind in between changes
 * nothing. Redirects are answers like any other.
 */
export class WebhookSender {
  readonly #mayReach: (address: string) => boolean
  readonly #resolve: Resolve

  constructor(mayReach: (address: string) => boolean, resolve: Resolve = resolveBySystem) {
    this.#mayReach = mayReach
    this.#resolve = resolve
  }

  /** Why this URL is not acceptable; undefined when it is, or when its name has no address for the moment. */
  async objectionTo(text: string, withinMs: number): Promise<string | undefined> {
    if (!URL.canParse(text)) return 'is not a URL'
    const url = new URL(text)
    if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://'
    if (url.username !== '' || url.password !== '') return 'must not contain a user name or password'
    const gaveUp = new Promise<string[]>((resolve) => setTimeout(resolve, withinMs, []).unref())
    const addresses = await Promise.race([this.#addressesOf(url).catch(() => []), gaveUp])
    if (addresses.some((address) => !this.#mayReach(address)))
      return 'must lead to a public address, or into a block that the operator allows with [webhooks] allow_private_ranges'
    return undefined
  }

  async post(text: string, headers: Record<string, string>, body: string, limitMs: number): Promise<Outcome> {
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(), limitMs)
    try {
      const url = new URL(text)
      const addresses = await orAbort(this.#addressesOf(url), controller.signal)
      const address = addresses.find((each) => this.#mayReach(each))
      if (address === undefined) return { status: 0, error: 'the URL does not lead to a public address' }
      const status = await this.#send(url, address, headers, body, controller.signal)
      return { status, error: status >= 200 && status < 300 ? '' : describe(status) }
    } catch (error) {
      if (controller.signal.aborted) return { status: 0, error: `no answer within ${limitMs / 1000} s` }
      return { status: 0, error: error instanceof Error ? error.message.slice(0, 300) : String(error) }
    } finally {
      clearTimeout(timer)
    }
  }

  #addressesOf(url: URL): Promise<string[]> {
    const host = hostOf(url)
    return isIP(host) ? Promise.resolve([host]) : this.#resolve(host)
  }

  #send(
    url: URL,
    address: string,
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal,
  ): Promise<number> {
    const family = isIP(address)
    return new Promise((resolve, reject) => {
      const open = url.protocol === 'https:' ? httpsRequest : httpRequest
      const outgoing: ClientRequest = open(url, {
        method: 'POST',
        // No connection is kept: each goes to an address that was checked for it.
        agent: false,
        signal,
        headers: { ...headers, 'content-length': Buffer.byteLength(body) },
        lookup: (_host, options, found) =>
          options.all ? found(null, [{ address, family }]) : found(null, address, family),
      })
      outgoing.on('error', reject)
      outgoing.on('response', (answer) => {
        const status = answer.statusCode ?? 0
        let heard = 0
        answer.on('data', (part: Buffer) => {
          heard += part.length
          if (heard > mostAnswerBytes) outgoing.destroy()
        })
        answer.on('close', () => resolve(status)).on('error', () => resolve(status))
      })
      outgoing.end(body)
    })
  }
}

function describe(status: number): string {
  return status >= 300 && status < 400
    ? `answered ${status}: redirects are not followed`
    : `answered ${status}`
}

function orAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return Promise.race([
    work,
    new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true }),
    ),
  ])
}
