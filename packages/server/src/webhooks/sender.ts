import { lookup } from 'node:dns/promises'
import { type ClientRequest, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP } from 'node:net'

const maxResponseBytes = 64 * 1024
/** How much of a response is kept, for the owner of the webhook. */
const maxKeptBytes = 2 * 1024

/** Returns all addresses of a name. */
export type Resolve = (hostname: string) => Promise<string[]>

const resolveBySystem: Resolve = async (hostname) =>
  (await lookup(hostname, { all: true, verbatim: true })).map(({ address }) => address)

export interface Outcome {
  /** 0 if there was no response. */
  status: number
  /** Empty on success. */
  error: string
  /** The beginning of the response, if it is text. */
  responseBody: string
}

const failedOutcome = (error: string): Outcome => ({ status: 0, error, responseBody: '' })

export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '')

/**
 * Posts to URLs that tenants choose, without letting them reach the operator's network. The name is resolved
 * here, its addresses are checked, and the connection is made to a checked address, so a DNS change in
 * between has no effect. Redirects are not followed.
 */
export class WebhookSender {
  readonly #mayReach: (address: string) => boolean
  readonly #resolve: Resolve

  constructor(mayReach: (address: string) => boolean, resolve: Resolve = resolveBySystem) {
    this.#mayReach = mayReach
    this.#resolve = resolve
  }

  /** Returns why this URL is rejected, or undefined. A name that does not resolve now is accepted. */
  async problemWith(text: string, withinMs: number): Promise<string | undefined> {
    if (!URL.canParse(text)) return 'is not a URL'
    const url = new URL(text)
    if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://'
    if (url.username !== '' || url.password !== '') return 'must not contain a user name or password'
    const timeout = new Promise<string[]>((resolve) => setTimeout(resolve, withinMs, []).unref())
    const addresses = await Promise.race([this.#addressesOf(url).catch(() => []), timeout])
    if (addresses.some((address) => !this.#mayReach(address)))
      return 'must resolve to a public address, or to a block that the operator allows with [webhooks] allow_private_ranges'
    return undefined
  }

  async post(text: string, headers: Record<string, string>, body: string, limitMs: number): Promise<Outcome> {
    const signal = AbortSignal.timeout(limitMs)
    try {
      const url = new URL(text)
      const addresses = await orAbort(this.#addressesOf(url), signal)
      const address = addresses.find((each) => this.#mayReach(each))
      if (address === undefined)
        return failedOutcome('the host name of the URL does not resolve to a public address')
      const { status, responseBody } = await this.#send(url, address, headers, body, signal)
      return { status, error: status >= 200 && status < 300 ? '' : describe(status), responseBody }
    } catch (error) {
      if (signal.aborted) return failedOutcome(`no response within ${limitMs / 1000} s`)
      return failedOutcome(error instanceof Error ? error.message.slice(0, 300) : String(error))
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
  ): Promise<Pick<Outcome, 'status' | 'responseBody'>> {
    const family = isIP(address)
    return new Promise((resolve, reject) => {
      const open = url.protocol === 'https:' ? httpsRequest : httpRequest
      const outgoing: ClientRequest = open(url, {
        method: 'POST',
        // Connections are not reused, because each address is checked for one request.
        agent: false,
        signal,
        headers: { ...headers, 'content-length': Buffer.byteLength(body) },
        lookup: (_host, options, found) =>
          options.all ? found(null, [{ address, family }]) : found(null, address, family),
      })
      outgoing.on('error', reject)
      outgoing.on('response', (response) => {
        const status = response.statusCode ?? 0
        let received = 0
        const kept: Buffer[] = []
        response.on('data', (part: Buffer) => {
          if (received < maxKeptBytes) kept.push(part.subarray(0, maxKeptBytes - received))
          received += part.length
          if (received > maxResponseBytes) outgoing.destroy()
        })
        const end = () => resolve({ status, responseBody: textOf(Buffer.concat(kept)) })
        response.on('close', end).on('error', end)
      })
      outgoing.end(body)
    })
  }
}

/** Returns the text of the bytes, without an incomplete character at the end; empty if they are not text. */
function textOf(bytes: Buffer): string {
  const text = new TextDecoder().decode(bytes, { stream: true })
  return /[\0\ufffd]/.test(text) ? '' : text
}

function describe(status: number): string {
  return status >= 300 && status < 400
    ? `responded with ${status}: redirects are not followed`
    : `responded with ${status}`
}

function orAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return Promise.race([
    work,
    new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true }),
    ),
  ])
}
