import type { Page } from 'playwright-core'
import { visit, waitUntilLoaded } from '../test/support/browser-program.ts'
import { makeStuck } from './contents.ts'
import { dialogs, openDialog } from './dialogs.ts'
import type { Scene } from './scene.ts'

/** Pages without a session. */
const ofVisitors = {
  'sign-in': '/sign-in',
  forgot: '/forgot',
  reset: '/reset#code=slpc_example',
  'set-up': '/setup?code=slpc_example',
  accept: '/accept#code=slpc_example',
  'billing-link-ended': '/billing/slpb_ended',
  'billing-returned': '/billing/returned',
}

/** Pages with something missing, failed or in progress. Each function prepares the situation and returns the page. */
export const situations: Record<string, (scene: Scene) => Promise<Page>> = {
  ...dialogs,
  search: async (scene) => {
    const page = await inProject(scene, '')
    await page.keyboard.press('/')
    await page.getByRole('combobox', { name: 'Search' }).fill('train')
    await page
      .getByRole('option', { name: /train-7/ })
      .first()
      .waitFor()
    return page
  },
  help: async (scene) => {
    const page = await inProject(scene, '')
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    return page
  },
  'vms-selected': async (scene) => {
    const page = await inProject(scene, '/vms')
    for (const name of ['train-7', 'trainer-1'])
      await page.getByLabel(`Select ${name}`, { exact: true }).check()
    return page
  },
  'fleet-health-faults': async (scene) => {
    await scene.sql(
      `INSERT INTO gpu_faults (gpu_id, xid, source, at)
       SELECT g.id, xid, source, slipway_now() - days * interval '1 day' - xid * interval '1 millisecond'
       FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM gpus) g
       JOIN (VALUES (1, 79, 'host', 0), (1, 48, 'guest', 0), (2, 31, 'guest', 6), (2, 79, 'host', 5),
                    (3, 94, 'host', 5), (170, 48, 'host', 5), (170, 79, 'host', 12)) f (n, xid, source, days) USING (n)`,
    )
    await scene.sql(
      'UPDATE gpus SET suspect_since = slipway_now(), fault_count = 2 WHERE id IN (SELECT id FROM gpus ORDER BY id LIMIT 2)',
    )
    return inFleet(scene, '/health')
  },
  ...Object.fromEntries(
    Object.entries(ofVisitors).map(([name, path]) => [name, (scene: Scene) => asVisitor(scene, path)]),
  ),
  'not-found': (scene) => inProject(scene, '/nothing-here'),
  'no-project': async (scene) => {
    const page = await scene.inviteOwner('lena@example.com', 'Harbour Observatory')
    await page.getByText('No projects yet').waitFor()
    return page
  },
  gate: async (scene) => {
    const page = await scene.inviteOwner('ada@example.com', 'Harbour Labs')
    await createProject(page, 'research')
    await page.getByRole('button', { name: 'Open billing' }).waitFor()
    return page
  },
  'gate-of-a-long-name': async (scene) => {
    const page = await scene.inviteOwner('grace@example.com', `${'Harbour Labs of the North '.repeat(3)}AG`)
    await createProject(page, 'x'.repeat(63))
    await page.getByRole('button', { name: 'Open billing' }).waitFor()
    return page
  },
  'dialog-project': async (scene) => {
    const page = await scene.inviteOwner('mia@example.com', 'Harbour Archive')
    return openDialog(page, 'Create project')
  },
  'dialog-delete-project': async (scene) =>
    openDialog(await inProject(scene, '/settings/project', 'with-0'), 'Delete project'),
  'dialog-fleet-forget-host': async (scene) => {
    // The host's next report ends this state.
    await scene.sql(`UPDATE hosts SET state = 'down' WHERE id = $1`, [scene.ids.fleet!.EMPTY])
    return openDialog(await inFleet(scene, '/hosts/EMPTY'), 'Forget')
  },
  'dialog-wait-to-start': async (scene) => {
    const page = await inProject(scene, '/vms/STOPPED')
    const hosts = 'UPDATE hosts SET is_schedulable ='
    await scene.sql(`${hosts} false`)
    await openDialog(page, 'Start')
    await scene.sql(`${hosts} true`)
    return page
  },
  'create-vm-wait': async (scene) => {
    await scene.sql('UPDATE hosts SET is_schedulable = false')
    const page = await inProject(scene, '/vms/new?like=VM')
    await page.getByRole('region', { name: 'Wait for capacity' }).waitFor()
    await scene.sql('UPDATE hosts SET is_schedulable = true')
    return page
  },
  'dialog-sign-in-again': async (scene) => {
    const email = 'kim@example.com'
    const page = await scene.inviteOwner(email, 'Harbour Museum')
    for (const table of ['access_tokens', 'refresh_tokens'])
      await scene.sql(
        `UPDATE ${table} SET expires_at = slipway_now() WHERE family_id IN (
           SELECT f.id FROM token_families f JOIN users u ON u.id = f.user_id WHERE u.email = $1)`,
        [email],
      )
    await visit(page, '/account')
    await page.getByText('Your session has ended').waitFor()
    return page
  },
  'account-two-factor': async (scene) => {
    const page = await scene.inviteOwner('rosa@example.com', 'Harbour School')
    await visit(page, '/account')
    await page.getByLabel('Confirm your password').fill('analytical-engine')
    await page.getByRole('button', { name: 'Set up' }).click()
    await page.getByLabel('QR code for the key below').waitFor()
    return page
  },
  'menu-of-phone': async (scene) => {
    const page = await inProject(scene, '')
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('button', { name: 'Menu', exact: true }).click()
    await page.getByRole('dialog', { name: 'Menu' }).waitFor()
    return page
  },
  'menu-of-projects': async (scene) => {
    const page = await inProject(scene, '')
    await page.getByRole('button', { name: /^Project/ }).click()
    return page
  },
  'dialog-webhook': async (scene) => {
    const page = await inProject(scene, '/settings/webhooks')
    await page.getByRole('button', { name: 'Create webhook' }).first().click()
    await page.getByRole('dialog').getByLabel('Only these').check()
    await page.getByRole('dialog').getByLabel('Disks', { exact: true }).check()
    await page.getByRole('button', { name: /of VMs$/ }).click()
    return page
  },
  'dialog-disk': async (scene) => {
    const page = await inProject(scene, '/disks')
    await page.getByRole('button', { name: 'Create disk' }).first().click()
    await page.getByText('Show as CLI, Terraform or curl').click()
    return page
  },
  'activity-steps': async (scene) => {
    const page = await inProject(scene, '/activity')
    await page.getByRole('button', { name: 'VM created' }).first().click()
    await page.getByRole('listitem').getByText('Start the VM').scrollIntoViewIfNeeded()
    return page
  },
  'webhook-delivery': async (scene) => {
    const project_id = scene.projects['with-20']!
    const [webhook] = await scene.owner.collect('webhookList', { project_id })
    const page = await inProject(scene, `/settings/webhooks/${webhook!.id}`)
    await page.getByRole('row').getByRole('button', { name: 'Test event' }).first().click()
    await page.getByRole('tab', { name: 'Payload' }).scrollIntoViewIfNeeded()
    return page
  },
  'dialog-key': async (scene) => {
    const page = await inProject(scene, '/settings/keys')
    await page.getByRole('button', { name: 'Create project key' }).first().click()
    return page
  },
  'vm-similar': async (scene) => {
    const { id } = await scene.createVm(scene.projects['with-1']!, 'model')
    const page = await inProject(scene, `/vms/new?like=${id}`, 'with-1')
    await page.getByText('Based on model').waitFor()
    return page
  },
  'dialog-rule': async (scene) => {
    const page = await inProject(scene, '/network/firewall')
    await page.getByRole('button', { name: 'Create rule' }).click()
    await page.getByRole('dialog').getByLabel('Name', { exact: true }).waitFor()
    return page
  },
  'vm-with-ssh': async (scene) => {
    const { id } = await scene.createVm(scene.projects['with-1']!, longName, { location: scene.routed })
    return inProject(scene, `/vms/${id}`, 'with-1')
  },
  'vm-under-way': async (scene) => {
    const { operation } = await scene.askForVm(scene.projects['with-1']!, 'booting', { location: scene.slow })
    const page = await inProject(scene, `/vms/${operation.metadata.id}`, 'with-1')
    await page.getByRole('list').getByText('Start the VM').first().waitFor()
    return page
  },
  'vm-deleted': async (scene) => {
    const project_id = scene.projects['with-1']!
    const { id: vm_id } = await scene.createVm(project_id, 'short-lived')
    const { operation } = await scene.owner.vmDelete({ project_id, vm_id })
    await scene.owner.wait({ project_id }, operation)
    return inProject(scene, `/vms/${vm_id}`, 'with-1')
  },
  'vm-crashed': async (scene) => {
    const { id } = await scene.createVm(scene.projects['with-1']!, 'fallen')
    await scene.sql(`UPDATE vms SET state = 'STATE_CRASHED' WHERE id = $1`, [id])
    return inProject(scene, `/vms/${id}`, 'with-1')
  },
  // Hosts cannot remove VMs from here on.
  'fleet-operations-stuck': async (scene) => {
    await makeStuck(scene, 'left-over-1')
    return inFleet(scene, '/operations')
  },
  'dialog-fleet-abandon': async (scene) => {
    await makeStuck(scene, 'left-over-2')
    return openDialog(await inFleet(scene, '/operations'), 'Abandon')
  },
  'billing-dashboard': (scene) => billingDashboard(scene),
  'overview-declined': async (scene) => {
    await decline(scene)
    return inProject(scene, '')
  },
  'billing-declined': async (scene) => {
    await decline(scene)
    return inProject(scene, '/settings/billing')
  },
  'billing-invoice': async (scene) => {
    await decline(scene)
    const page = await billingDashboard(scene)
    await page.locator('a[href*="/invoices/"]').first().click()
    await page.getByRole('heading', { level: 1, name: /^Invoice/ }).waitFor()
    return page
  },
  'billing-dashboard-declined': async (scene) => {
    await decline(scene)
    return billingDashboard(scene)
  },
  'fleet-organizations-declined': async (scene) => {
    await decline(scene)
    return inFleet(scene, '/organizations')
  },
  'payment-needed': async (scene) => {
    await setPaymentState(scene, 'removed')
    return inProject(scene, '/vms/new')
  },
}

const longName = 'inference-gateway-production-eu-north-with-a-name-of-63-letters'

async function inProject(scene: Scene, path: string, project = 'with-20'): Promise<Page> {
  await visit(scene.page, scene.pathIn(project, path))
  return scene.page
}

async function inFleet(scene: Scene, path: string): Promise<Page> {
  await visit(scene.operatorPage, scene.pathIn('fleet', path))
  return scene.operatorPage
}

async function asVisitor(scene: Scene, path: string): Promise<Page> {
  const page = await scene.newPage()
  await page.goto(scene.url + path)
  await waitUntilLoaded(page)
  return page
}

async function createProject(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'Create project' }).click()
  await page.getByLabel('Name').fill(name)
  await page.getByRole('dialog').getByRole('button', { name: 'Create project' }).click()
}

async function billingDashboard(scene: Scene): Promise<Page> {
  const { url } = await scene.owner.organizationBilling({ organization_id: scene.organization_id })
  return asVisitor(scene, new URL(url).pathname)
}

const setPaymentState = (scene: Scene, state: string) =>
  scene.sql(
    `UPDATE organizations SET payment_state = $2, payment_state_since = slipway_now() - interval '3 hours' WHERE id = $1`,
    [scene.organization_id, state],
  )

/** Declines the card and adds an unpaid invoice of the previous month. */
async function decline(scene: Scene): Promise<void> {
  await setPaymentState(scene, 'declined')
  await scene.sql(
    `WITH added AS (
       INSERT INTO invoices (id, organization_id, month, state, usd_cents)
       VALUES (gen_random_uuid(), $1, date_trunc('month', slipway_now() - interval '1 month')::date, 'issued', 184250)
       ON CONFLICT DO NOTHING RETURNING id)
     INSERT INTO invoice_lines (invoice_id, project_id, product_name, unit, quantity_ms, usd_cents)
     SELECT id, $2, 'a100.1x', 'vm_hour', 4574200000, 184250 FROM added`,
    [scene.organization_id, scene.projects['with-20']],
  )
}
