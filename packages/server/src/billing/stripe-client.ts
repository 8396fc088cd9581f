import type Stripe from 'stripe'
import type { Config } from '../config/index.ts'
import type { Services } from '../services.ts'

const timeoutMs = 10_000
const clients = new WeakMap<Config, Stripe>()

/** Returns the Stripe client for the configuration. Tests set the URL of an emulator. */
export async function stripeOf({ config }: Pick<Services, 'config'>): Promise<Stripe> {
  // Loaded on first use, because this is by far the largest package.
  const { default: StripeClient } = await import('stripe')
  const known = clients.get(config)
  if (known) return known
  const { stripeKey, stripeApiUrl } = config.billing
  const apiUrl = stripeApiUrl === '' ? null : new URL(stripeApiUrl)
  const client = new StripeClient(stripeKey, {
    timeout: timeoutMs,
    maxNetworkRetries: 1,
    telemetry: false,
    appInfo: { name: 'slipway' },
    ...(apiUrl && {
      host: apiUrl.hostname,
      port: apiUrl.port || (apiUrl.protocol === 'https:' ? '443' : '80'),
      protocol: apiUrl.protocol === 'https:' ? ('https' as const) : ('http' as const),
    }),
  })
  clients.set(config, client)
  return client
}
