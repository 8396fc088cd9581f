import { isIP } from 'node:net'
import { hostname } from 'node:os'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Failure } from '../domain/failure.ts'
import type { Services } from '../services.ts'

/** Accepted host names are cached, so that a request costs one lookup. Beyond this count, the cache is emptied. */
const maxRemembered = 256

/**
 * Rejects requests for a host name that does not belong to this service. Otherwise a site that points its own
 * name at the address of this service could read responses in the browser of a person who can reach this
 * service (DNS rebinding). Addresses and names without a dot are accepted, because no other site can own them.
 */
export function checkHostNames(app: FastifyInstance, services: Services): void {
  const { host, allowedHosts } = services.config.server
  const named = new Set([host, hostname(), 'localhost', ...allowedHosts].map(normalize))
  const accepted = new Set<string>()

  function isOwn(given: string): boolean {
    const name = normalize(nameOf(given))
    return (
      isIP(name) > 0 ||
      /^[a-z0-9_-]+$/.test(name) ||
      name.endsWith('.localhost') ||
      named.has(name) ||
      name === normalize(nameOf(hostOf(services.publicUrl())))
    )
  }

  app.addHook('onRequest', (request, _reply, done) => {
    const given = request.host ?? ''
    if (hasSeveralHosts(request)) return done(new Failure('invalid_argument', 'Send one Host header.'))
    // Requests of HTTP/1.0 may have no Host header. Browsers do not send such requests.
    if (given === '' || accepted.has(given)) return done()
    if (!isOwn(given)) {
      const message = `Unknown host name ${nameOf(given).slice(0, 100)}. An operator can add it to [server] allowed_hosts.`
      return done(new Failure('permission_denied', message))
    }
    if (accepted.size >= maxRemembered) accepted.clear()
    accepted.add(given)
    done()
  })
}

/** Returns whether the page that sent the request belongs to this service. */
export function isOwnOrigin(request: FastifyRequest, services: Services): boolean {
  const { origin = '' } = request.headers
  return (
    URL.canParse(origin) && [request.host, new URL(services.publicUrl()).host].includes(new URL(origin).host)
  )
}

const hostOf = (url: string) => (URL.canParse(url) ? new URL(url).host : '')

/** Removes the port, and the brackets of an IPv6 address. */
const nameOf = (host: string) => host.replace(/:[0-9]*$/, '').replace(/^\[(.*)\]$/, '$1')

const normalize = (name: string) => name.toLowerCase().replace(/\.$/, '')

/** Node keeps the first of several Host headers; a proxy in front of this service may have checked another one. */
function hasSeveralHosts({ raw: { rawHeaders } }: FastifyRequest): boolean {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count > 1
}
