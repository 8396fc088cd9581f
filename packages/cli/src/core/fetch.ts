import { request as requestHttp } from 'node:http'
import { Readable } from 'node:stream'

/** The proxy code is loaded only when a proxy is configured. */
export const usesProxy = () =>
  ['https_proxy', 'http_proxy', 'all_proxy'].some(
    (name) => process.env[name] || process.env[name.toUpperCase()],
  )

/**
 * The part of `fetch` that the SDK uses, built on Node's HTTP client: the built-in `fetch` takes 60 ms to
 * load and 150 ms more before the process can end, which is longer than most commands take.
 */
export const lightFetch = (async (url: string, init: RequestInit = {}) => {
  const target = new URL(url)
  const send = target.protocol === 'https:' ? (await import('node:https')).request : requestHttp
  const { headers, ...route } = usesProxy() ? (await import('./proxy.ts')).viaProxy(target) : {}
  return new Promise<unknown>((resolve, reject) => {
    const request = send(target, {
      ...route,
      method: init.method ?? 'GET',
      headers: { ...(headers as Record<string, string>), ...(init.headers as Record<string, string>) },
      ...(init.signal && { signal: init.signal }),
    })
    request.once('error', (cause) => reject(Object.assign(new TypeError('fetch failed'), { cause })))
    request.once('response', (response) => {
      const status = response.statusCode ?? 0
      resolve({
        url,
        status,
        ok: status >= 200 && status < 300,
        statusText: response.statusMessage ?? '',
        headers: { get: (name: string) => response.headers[name]?.toString() ?? null },
        text: async () => {
          const chunks: Buffer[] = []
          for await (const chunk of response) chunks.push(chunk as Buffer)
          return Buffer.concat(chunks).toString('utf8')
        },
        get body() {
          return Readable.toWeb(response)
        },
      })
    })
    request.end(init.body as string | undefined)
  })
}) as unknown as typeof fetch
