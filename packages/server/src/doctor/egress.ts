import { lookup } from 'node:dns/promises'
import { connect } from 'node:net'
import { createTransport } from 'nodemailer'
import type { Config } from '../config/index.ts'
import { addressGuard } from '../domain/public-address.ts'
import { type Finding, ok, problem, warning } from '../engines/incus/operate/finding.ts'
import type { DatabaseFacts } from '../postgres/examine.ts'

const connectMs = 5_000

/** Tries the connections that the service opens: to webhooks, the mail server and identity providers. */
export async function egressFindings(config: Config, facts: DatabaseFacts | undefined): Promise<Finding[]> {
  return [
    await webhookFinding(config, facts?.webhookUrls ?? []),
    ...(config.mail ? [await mailFinding(config.mail.smtpUrl)] : []),
    ...(await Promise.all(config.oidc.map(({ name, issuer }) => issuerFinding(name, issuer)))),
  ]
}

/**
 * A tenant's webhook may be down at any time, so only the failure of all webhooks shows a problem with this
 * machine.
 */
async function webhookFinding({ webhooks }: Config, urls: string[]): Promise<Finding> {
  const step = 'webhook egress'
  if (urls.length === 0) return ok(step, 'no webhooks to try yet')
  const mayReach = addressGuard(webhooks.allowPrivateRanges)
  const errors = await Promise.all(urls.map((url) => tryConnection(new URL(url), mayReach)))
  const failed = errors.filter((error) => error !== '')
  if (failed.length < urls.length)
    return ok(step, `${urls.length - failed.length} of ${urls.length} webhooks accept connections`)
  return problem(
    step,
    `none of ${urls.length} webhooks accepts a connection: ${failed[0]}`,
    'allow connections to the internet on ports 80 and 443 from this machine, and check its DNS servers',
    'for receivers in your own network, set [webhooks] allow_private_ranges',
  )
}

/** Returns '' if a connection can be opened, otherwise the reason. Nothing is sent. */
async function tryConnection(url: URL, mayReach: (address: string) => boolean): Promise<string> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  try {
    const addresses = (await lookup(host, { all: true })).map(({ address }) => address)
    const address = addresses.find(mayReach)
    if (!address) return `${host} has no address that webhooks may use`
    const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
    return await new Promise((resolve) => {
      const socket = connect({ host: address, port, timeout: connectMs })
      const end = (reason: string) => {
        socket.destroy()
        resolve(reason)
      }
      socket.once('connect', () => end(''))
      socket.once('timeout', () => end(`${host} does not respond`))
      socket.once('error', (error) => end(`${host}: ${error.message}`))
    })
  } catch (error) {
    return (error as Error).message
  }
}

async function mailFinding(smtpUrl: string): Promise<Finding> {
  const transport = createTransport(smtpUrl, {})
  try {
    await transport.verify()
    return ok('mail', 'the mail server accepts the login')
  } catch (error) {
    return problem(
      'mail',
      `the mail server cannot be used: ${(error as Error).message}`,
      'check [mail] smtp_url_env',
    )
  } finally {
    transport.close()
  }
}

async function issuerFinding(name: string, issuer: string): Promise<Finding> {
  const step = `single sign-on ${name}`
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(connectMs) })
    if (response.ok) return ok(step, `${issuer} responds`)
    return warning(step, `${url} returns status ${response.status}`, 'check [[oidc]] issuer')
  } catch (error) {
    const { message } = ((error as Error).cause ?? error) as Error
    return problem(
      step,
      `${url} cannot be reached: ${message}`,
      'check [[oidc]] issuer and the egress of this machine',
    )
  }
}
