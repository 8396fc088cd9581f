import { createClient, logIn, type Vm } from '@slipway/sdk'
import { growRows, openStore } from '@slipway/testing/grow-rows.ts'
import { simulatedLocation, startRealServer } from '@slipway/testing/real-server.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { launch } from '../test/support/browser-program.ts'

const location = 'us-east1-a'
/** The addresses of this location do not look simulated, so the console shows the SSH commands. */
const routed = 'eu-north1-a'
/** VMs of this location boot slowly, so that a screenshot can show the boot. */
const slow = 'ap-south1-a'
const models = ['A100 40GB PCIe', 'L40S 48GB PCIe']
const config = `
${simulatedLocation({ name: location, publicIpv4: '198.18.0.0/18', models, hostsPerModel: 20 })}
${simulatedLocation({ name: routed, publicIpv4: '203.0.113.0/24', models })}
${simulatedLocation({ name: slow, publicIpv4: '198.18.64.0/18', models, bootMs: [240_000, 240_000] })}
[limits]
requests_per_second = 100000
burst = 100000
organization_requests_per_second = 100000
organization_burst = 100000
`

/** Starts the demo with projects that have the given numbers of VMs, and a browser that is signed in. */
export async function startScene(counts: Record<string, number>) {
  const server = await startRealServer({ config })
  const { url, email, password, project_id } = server
  const { token } = await logIn({ baseUrl: url, email, password })
  const owner = createClient({ baseUrl: url, token })
  const { organization_id } = (await owner.projectList()).find(({ id }) => id === project_id)!
  const operator = createClient({ baseUrl: url, token: server.operator_key })
  // growRows does not check quotas, but the service checks them when it creates more VMs afterwards.
  const items = (['vms', 'a100_gpus'] as const).map((name) => ({ name, max: 100_000 }))
  await operator.adminOrganizationQuotaSet({ organization_id }, { items })
  const database = openStore(server.dataDir)

  const askForVm = (project_id: string, name: string, more: { location?: string } = {}) =>
    owner.vmCreate(
      { project_id },
      {
        name,
        type: 'a100.1x',
        location,
        image: 'ubuntu24.04-nvidia',
        ssh_public_key: sshKey,
        labels: { team: 'ml' },
        ...more,
      },
    )
  const createVm = async (...vm: Parameters<typeof askForVm>): Promise<Vm> => {
    const { operation } = await askForVm(...vm)
    return (await owner.wait<Vm>({ project_id: vm[0] }, operation)).result
  }
  const projects: Record<string, string> = {}
  let after = 0
  for (const [name, count] of Object.entries(counts)) {
    const { id } = await owner.projectCreate({ name, organization_id })
    projects[name] = id
    if (count === 0) continue
    const running = await createVm(id, 'train-7')
    if (count === 1) continue
    const shutOff = await createVm(id, 'notebook')
    const { operation } = await owner.vmUpdate({ project_id: id, vm_id: shutOff.id }, { action: 'STOP' })
    await owner.wait({ project_id: id }, operation)
    const templates = { running: running.id, shutOff: shutOff.id }
    const vms = count - 2
    await growRows(database, {
      vms,
      after,
      operations: vms,
      events: 2 * vms,
      location,
      projectIds: [id],
      templates,
    })
    // All new events are copies of one event. Gives each VM two of them, with the VM's name, its operation, and
    // times before the creation of the project's first VMs.
    await server.sql(
      `WITH numbered_vms AS (
         SELECT v.id, v.name, o.id AS operation_id, row_number() OVER (ORDER BY v.id) AS n
         FROM vms v JOIN operations o ON o.resource_id = v.id WHERE v.project_id = $1 AND v.name LIKE 'grown-%'),
       numbered_events AS (
         SELECT e.id, row_number() OVER (ORDER BY e.position) AS n
         FROM events e JOIN numbered_vms v ON v.id::text = e.resource_id WHERE e.project_id = $1)
       UPDATE events e SET resource_id = v.id::text, created_at = now() + (n.n - 2 * $2) * interval '0.2 s',
         data = e.data || jsonb_build_object('name', v.name, 'operation_id', v.operation_id)
       FROM numbered_events n JOIN numbered_vms v ON v.n = (n.n + 1) / 2 WHERE e.id = n.id`,
      [id, vms],
    )
    await server.sql(
      `UPDATE events SET created_at = created_at - interval '1 hour'
       WHERE project_id = $1 AND resource_id NOT IN (SELECT id::text FROM vms WHERE name LIKE 'grown-%')`,
      [id],
    )
    after += vms
  }
  const browser = await launch()
  const newPage = async () => {
    const viewport = { width: 1440, height: 900 }
    const context = await browser.newContext({ viewport, reducedMotion: 'reduce' })
    return context.newPage()
  }
  const signIn = async (email: string, password: string) => {
    const page = await newPage()
    await page.goto(url)
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('navigation', { name: 'Main' }).waitFor()
    return page
  }
  /** Returns a page of the owner of a new organization, just after sign-in. */
  const inviteOwner = async (email: string, name: string) => {
    const { id } = await operator.adminOrganizationCreate({ name })
    const { invite_url } = await operator.adminUserCreate({ email, organization_id: id, role: 'owner' })
    const page = await newPage()
    await page.goto(invite_url)
    await page.getByLabel('Password').fill('analytical-engine')
    await page.getByRole('button', { name: 'Set password and sign in' }).click()
    await page.getByRole('button', { name: 'Account', exact: true }).waitFor()
    return page
  }
  /** The IDs for the paths of pages, by project; those of the operators' pages are under `fleet`. */
  const ids: Record<string, Record<string, string>> = {}
  /** Returns a path in a project or in `fleet`. A word in capitals stands for an ID. */
  const pathIn = (where: string, path: string) =>
    (where === 'fleet' ? '/fleet' : `/projects/${projects[where]}`) +
    path.replace(/[A-Z]{2,}/, (what) => ids[where]?.[what] ?? what)
  return {
    url,
    owner,
    operator,
    organization_id,
    projects,
    ids,
    pathIn,
    routed,
    slow,
    askForVm,
    createVm,
    newPage,
    inviteOwner,
    sql: server.sql,
    page: await signIn(email, password),
    operatorPage: await signIn(server.operator_email, server.operator_password),
    close: async () => {
      await browser.close()
      await database.close()
      await server.close()
    },
  }
}

export type Scene = Awaited<ReturnType<typeof startScene>>
