import { createClient, logIn } from '@slipway/sdk'
import { createDatabase } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { clientSecret, startOidcStand } from '@slipway/testing/oidc-stand.ts'
import { simulatedLocation, startEmptyServer, startRealServer } from '@slipway/testing/real-server.ts'

const pace = { bootMs: [100, 200] as [number, number], quarantineMs: 100 }
const models = ['A40 48GB PCIe', 'A100 40GB PCIe', 'A100 80GB PCIe', 'L40S 48GB PCIe']

/** Two locations, one of which is small enough to run out of stock. VMs boot in a fraction of a second. */
const config = `
${simulatedLocation({ ...pace, name: 'us-east1-a', publicIpv4: '198.18.0.0/18', models, hostsPerModel: 2 })}
${simulatedLocation({ ...pace, name: 'eu-north1-a', publicIpv4: '198.18.128.0/18', models: ['A100 40GB PCIe'] })}
[webhooks]
allow_private_ranges = ["127.0.0.0/8"]
[limits]
requests_per_second = 1000
burst = 2000
organization_requests_per_second = 1000
organization_burst = 2000
`

/** Starts a service with single sign-on. `stand` is the identity provider. */
export async function startService() {
  const stand = await startOidcStand(() => `${server.url}/v0.1/auth/oidc/company/callback`)
  const provider = `name = "company"\nissuer = "${stand.issuer}"\nclient_id = "slipway"`
  const server = await startRealServer({
    database: await createDatabase(),
    config: `${config}[[oidc]]\n${provider}\nclient_secret_env = "OIDC_SECRET"`,
    env: { OIDC_SECRET: clientSecret },
  })
  return {
    ...server,
    stand,
    operator: createClient({ baseUrl: server.url, token: server.operator_key }),
    async close() {
      await server.close()
      await stand.close()
    },
  }
}

/** Starts a service with an empty database and a setup code. */
export const startEmptyService = async () => startEmptyServer({ database: await createDatabase(), config })

type RunningService = Awaited<ReturnType<typeof startService>>

/**
 * Adds an organization with a payment method and quotas for the whole fleet, an owner, a project and an access key. The
 * `spareCount` projects are for tests that need their own project. They must exist when the user signs in, because the
 * console loads the list of projects then.
 */
export async function addTenant(service: RunningService, organization: string, spareCount: number) {
  const { url: baseUrl, operator, sql } = service
  const { id: organization_id } = await operator.adminOrganizationCreate({ name: organization })
  await sql(
    `UPDATE organizations SET payment_state = 'active', payment_customer_id = $1::text WHERE id = $1::uuid`,
    [organization_id],
  )
  await sql(
    `INSERT INTO payment_methods (organization_id, provider, reference, brand, last4, expires_month, expires_year)
     SELECT $1, provider, reference, brand, last4, expires_month, expires_year
     FROM payment_methods WHERE organization_id = $2`,
    [organization_id, service.organization_id],
  )
  const fleet = await operator.adminOrganizationQuotaList({ organization_id: service.organization_id })
  const items = fleet.items.map(({ name, max }) => ({
    name,
    max: name === 'projects' ? Math.max(max, spareCount + 1) : max,
  }))
  await operator.adminOrganizationQuotaSet({ organization_id }, { items })
  const domain = `${organization.toLowerCase()}.example`
  const owner = { email: `owner@${domain}`, organization_id, role: 'owner' as const }
  const { email, password } = await addUser(service, owner)
  const asOwner = createClient({ baseUrl, token: (await logIn({ baseUrl, email, password })).token })
  const { id: project_id } = await asOwner.projectCreate({ name: 'default', organization_id })
  const { secret: access_key } = await asOwner.accessKeyCreate(
    { project_id },
    { name: 'tests', role: 'write' },
  )
  const tenant = createClient({ baseUrl, token: access_key })
  const spareProjects: string[] = []
  while (spareProjects.length < spareCount) {
    const name = `project-${spareProjects.length + 1}`
    spareProjects.push((await asOwner.projectCreate({ name, organization_id })).id)
  }
  const ids = { organization_id, project_id, spareProjects }
  return { ...service, ...ids, email, password, access_key, asOwner, tenant }
}

/** Adds a user who has accepted the invitation. */
export async function addUser(
  { url, operator }: RunningService,
  user: { email: string; is_operator?: boolean; organization_id?: string; role?: 'viewer' | 'owner' },
) {
  const password = 'analytical-engine'
  const { invite_url } = await operator.adminUserCreate(user)
  const visitor = createClient({ baseUrl: url, token: '' })
  await visitor.authAccept({ code: invite_url.split('#code=')[1]!, password })
  return { email: user.email, password }
}

/** The service with the tenant of one suite. */
export type Service = Awaited<ReturnType<typeof addTenant>>

/** Deletes all VMs, so that all GPUs are free for the next suite. */
export async function removeVms({ operator, sql }: RunningService): Promise<void> {
  await sql('DELETE FROM simulated_faults')
  await sql('UPDATE vms SET is_protected = false')
  // Retry failed operations immediately.
  await sql('UPDATE operation_queue SET run_at = slipway_now() WHERE run_at > slipway_now()')
  const listVms = () => operator.collect('adminVmList', {})
  for (const { id } of await listVms())
    await operator.adminVmDelete({ vm_id: id }).catch((error) => {
      // A test may have started its deletion, which has finished by now.
      if (error.code !== 'not_found') throw error
    })
  await eventually(async () => (await listVms()).length === 0)
  // The engine resets a GPU, and an inspection must find it clean before the next VM gets it.
  const uncleaned = `SELECT FROM gpus WHERE state = 'quarantined' AND NOT is_held_back LIMIT 1`
  await eventually(async () => (await sql(uncleaned)).length === 0)
}
