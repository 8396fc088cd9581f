import type { RequestOptions } from 'node:http'
import { HttpsProxyAgent } from 'https-proxy-agent'
import { getProxyForUrl } from 'proxy-from-env'

/**
 * Returns the request options for the proxy in HTTPS_PROXY or HTTP_PROXY, unless NO_PROXY exempts the target.
 * Uses a tunnel for https, and the whole URL in the request line for http.
 */
export function viaProxy(target: URL): RequestOptions {
  const address = getProxyForUrl(target.href)
  if (!address) return {}
  const proxy = new URL(address)
  if (target.protocol === 'https:') return { agent: new HttpsProxyAgent(proxy) }
  const login =
    proxy.username && `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
  return {
    hostname: proxy.hostname,
    port: proxy.port || 80,
    path: target.href,
    headers: {
      host: target.host,
      ...(login && { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` }),
    },
  }
}
