import { createClient, logIn } from '@slipway/sdk'
import { createDatabase } from '@slipway/testing/database.ts'
import {
  type RealServerOptions,
  simulatedLocation,
  startEmptyServer,
  startRealServer,
} from '@slipway/testing/real-server.ts'

const pace = { bootMs: [700, 1000] as [number, number], quarantineMs: 100 }
const models = ['A40 48GB PCIe', 'A100 40GB PCIe', 'A100 80GB PCIe', 'L40S 48GB PCIe']

/** There are two locations, one of them small enough to run out, and VMs boot in a second. */
const config = `
${simulatedLocation({ ...pace, name: 'us-east1-a', publicIpv4: '198.18.0.0/18', models, hostsPerModel: 2 })}
${simulatedLocation({ ...pace, name: 'eu-north1-a', publicIpv4: '198.18.128.0/18', models: ['A100 40GB PCIe'] })}
[webhooks]
allow_private_ranges = ["127.0.0.0/8"]
[limits]
requests_per_second = 1000
burst = 2000
`

/** What a file of tests adds to the configuration of its service. */
export type MoreConfig = Pick<RealServerOptions, 'config' | 'env'>

/** Starts a service with the demo, whose people and keys the tests use. */
export async function startService({ config: more = '', ...options }: MoreConfig = {}) {
  const server = await startRealServer({
    database: await createDatabase(),
    config: config + more,
    ...options,
  })
  const { url: baseUrl, access_key, operator_key, email, password } = server
  const owner = await logIn({ baseUrl, email, password })
  return Object.assign(server, {
    tenant: createClient({ baseUrl, token: access_key }),
    asOwner: createClient({ baseUrl, token: owner.token }),
    operator: createClient({ baseUrl, token: operator_key }),
  })
}

/** Starts a service with an empty store, and the code that makes the first operator. */
export const startEmptyService = async () => startEmptyServer({ database: await createDatabase(), config })

export type Service = Awaited<ReturnType<typeof startService>>
