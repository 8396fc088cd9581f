import { randomUUID } from 'node:crypto'
import { eventually } from '@slipway/testing/eventually.ts'
import { describe, expect, test } from 'vitest'
import {
  createVm,
  isBrowserMissing,
  modalOf,
  openTab,
  screenshot,
  signInAsOperator,
  takeProject,
  useConsole,
  visit,
} from '../support/browser.ts'

const now = new Date()
/** Returns the month that was the given number of months ago, such as `2026-10`. */
function monthsAgo(number: number): string {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - number, 1)).toISOString().slice(0, 7)
}

describe.skipIf(isBrowserMissing)('costs and alerts in the console', () => {
  const scene = useConsole('Money')
  const main = () => scene.page.getByRole('main')
  const dialog = () => modalOf(scene.page)
  const alerts = () => main().getByRole('region', { name: 'Alerts' })
  const open = (projectId: string, path: string) => visit(scene.page, `/projects/${projectId}${path}`)

  test('the page of a VM shows hardware, price, cost, uptime and expiry', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const vm = await createVm(service, 'priced', 'a40.2x', project_id)
    await service.asOwner.vmUpdate({ project_id, vm_id: vm.id }, { ttl_seconds: 7200, on_expiry: 'stop' })
    await service.sql(`UPDATE vms SET started_at = slipway_now() - interval '3 hours' WHERE id = $1`, [vm.id])
    await service.sql(
      `UPDATE prices SET valid_from = valid_from - interval '1 day' WHERE product_name = 'a40.2x'`,
    )
    await service.sql(
      `UPDATE usage_intervals SET period = tstzrange(lower(period) - interval '3 hours', NULL) WHERE resource_id = $1`,
      [vm.id],
    )
    await open(project_id, `/vms/${vm.id}`)
    await main().getByText('2 × A40 48GB PCIe').waitFor()
    await main().getByText('1.80 USD/h').waitFor()
    await main()
      .getByText(/^will be stopped in (1 h 5\d min|2 h)$/)
      .waitFor()
    const fact = (name: string) => main().locator('dl > div', { hasText: name })
    await fact('Uptime').getByText('3 h').waitFor()
    await fact('Cost so far')
      .getByText(/^5\.4\d USD$/)
      .waitFor()
    // The network section shows the address as well.
    await fact('Public address')
      .first()
      .getByText(/^198\.18\./)
      .waitFor()
    expect(await fact('Private address').count()).toBe(1)
    await screenshot(page, 'vm-money-light')
  })

  test('the dialog for a new type shows both prices', async () => {
    const { service } = scene
    const project_id = takeProject(service)
    const vm = await createVm(service, 'growing', 'a40.1x', project_id)
    const { operation } = await service.asOwner.vmUpdate({ project_id, vm_id: vm.id }, { action: 'STOP' })
    await service.asOwner.wait({ project_id }, operation)
    await open(project_id, `/vms/${vm.id}`)
    await main().getByText('0.90 USD/h when running (not billed now)').waitFor()
    await main().getByRole('button', { name: 'Change type' }).click()
    await dialog().getByLabel('Type').selectOption('a40.4x')
    await dialog().getByText('0.90 USD/h', { exact: true }).waitFor()
    await dialog()
      .getByText(/^3\.60 USD\/h \(2\.70 USD\/h more\)$/)
      .waitFor()
  })

  test('a deletion that failed 21 times raises an alert with the name of the VM', async () => {
    const { service } = scene
    const project_id = takeProject(service)
    await service.sql(
      `INSERT INTO simulated_faults (method, kind, delay_ms, remaining) VALUES ('removeVm', 'fail', 0, 1000)`,
    )
    const vm = await createVm(service, 'clinging', 'a40.1x', project_id)
    const { operation } = await service.asOwner.vmDelete({ project_id, vm_id: vm.id })
    // Change the row between two attempts: an attempt in progress overwrites the count.
    await eventually(async () => {
      const changed = await service.sql(
        `WITH idle AS MATERIALIZED (SELECT operation_id FROM operation_queue
                                    WHERE operation_id = $1 AND lease_token IS NULL FOR UPDATE)
         UPDATE operations SET attempts = 21 FROM idle WHERE id = operation_id AND attempts > 0 RETURNING id`,
        [operation.operation_id],
      )
      return changed.length > 0
    })
    await open(project_id, `/vms/${vm.id}`)
    await alerts()
      .getByText(/^Deleting the VM clinging failed 2\d times/)
      .waitFor()
    await open(project_id, '/vms')
    await main()
      .getByRole('row', { name: /clinging.*stuck/ })
      .waitFor()
    await service.sql('DELETE FROM simulated_faults')
  })

  test('the events of one operation form one row, with the time in seconds', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await createVm(service, 'told-once', 'a40.1x', project_id)
    await open(project_id, '/activity')
    const lines = main().getByRole('row', { name: /VM told-once/ })
    await lines.filter({ hasText: /VM created.*\d m?s/s }).waitFor()
    expect(await lines.count()).toBe(1)
    expect(await lines.getByRole('time').textContent()).toMatch(/:\d\d:\d\d/)
    await screenshot(page, 'activity-of-a-vm-light')
    await service.operator.adminUserCreate({
      email: 'told@money.example',
      organization_id: service.organization_id,
      role: 'viewer',
    })
    await open(project_id, '/settings/organization')
    await main()
      .getByRole('row', { name: /^User invited user told@money\.example/ })
      .waitFor()
  })

  test('usage is grouped by VM or label and compared with the previous month and the budget', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const spend = (month: string, name: string, team: string, hours: number) =>
      service.sql(
        `INSERT INTO usage_resource_days (project_id, day, resource_id, location, resource_type, product_name,
                                          resource_name, labels, quantity_ms, cost_usd_ms)
         VALUES ($1, $2, $3, 'us-east1-a', 'vm', 'a40.1x', $4, $5, $6, $7)`,
        [
          project_id,
          `${month}-03`,
          randomUUID(),
          name,
          JSON.stringify({ team }),
          hours * 3_600_000,
          hours * 10 * 3_600_000,
        ],
      )
    await spend(monthsAgo(1), 'train-1', 'vision', 6)
    await spend(monthsAgo(1), 'train-2', 'vision', 3)
    await spend(monthsAgo(1), 'chat', 'language', 1)
    await spend(monthsAgo(2), 'train-1', 'vision', 4)
    await service.asOwner.budgetSet({ project_id }, { monthly_usd: 600 })
    await open(project_id, `/usage?month=${monthsAgo(1)}&by=vm`)
    const row = (table: string, name: RegExp) =>
      main().getByRole('table', { name: table }).getByRole('row', { name })
    await row('By VM', /train-1 60\.00 40\.00 \+50%/).waitFor()
    await row('By VM', /chat 10\.00 0\.00 new/).waitFor()
    await main()
      .getByText(/100\.00 USD/)
      .first()
      .waitFor()
    await main()
      .getByText(/\(\+150%\)/)
      .waitFor()
    await main()
      .getByText(/budget 600\.00 USD, daily pace/)
      .waitFor()
    await screenshot(page, 'usage-by-vm-light')
    await open(project_id, `/usage?month=${monthsAgo(1)}&by=label:team`)
    await row('By label team', /vision 90\.00 40\.00 \+125%/).waitFor()
    await main().getByLabel('Group by').selectOption('By product')
    await page.waitForURL((url) => !url.searchParams.has('by'))
  })

  test('visitors see types, prices and availability without signing in', async () => {
    const visitor = await openTab(await scene.browser.newContext())
    await visitor.page.goto(`${scene.service.url}/`)
    await visitor.page.getByRole('link', { name: 'Types, prices and availability' }).click()
    const types = visitor.page.getByRole('region', { name: 'A100 40GB PCIe' })
    await types.getByText('40 GB of memory per GPU, 1.45 USD per GPU-hour').waitFor()
    await types.getByRole('row', { name: /a100\.2x 2 2\.90 USD us-east1-a.* 24 240 GB/ }).waitFor()
    await visitor.page.getByLabel('GPU').selectOption('A40 48GB PCIe')
    await types.getByRole('row', { name: /^a100\.1x/ }).waitFor({ state: 'detached' })
    await screenshot(visitor.page, 'catalogue-visitor-light')
    expect(visitor.complaints).toEqual([])
    await visitor.page.context().close()
  })

  test('a declined card and an unpaid invoice are shown on the overview, in billing and to operators', async () => {
    const { service } = scene
    const { project_id, organization_id } = service
    await service.sql(`UPDATE organizations SET payment_state = 'declined' WHERE id = $1`, [organization_id])
    const invoiceId = randomUUID()
    await service.sql(
      `INSERT INTO invoices (id, organization_id, month, state, usd_cents) VALUES ($1, $2, $3, 'issued', 4200)`,
      [invoiceId, organization_id, `${monthsAgo(1)}-01`],
    )
    await service.sql(
      `INSERT INTO invoice_lines (invoice_id, project_id, product_name, unit, quantity_ms, usd_cents)
       VALUES ($1, $2, 'a40.1x', 'vm_hour', 3600000, 4200)`,
      [invoiceId, project_id],
    )
    for (const path of ['', '/settings/billing']) {
      await open(project_id, path)
      await alerts().getByText('The payment method of Money was declined').waitFor()
      await alerts()
        .getByText(/ for [A-Z][a-z]+ \d{4}, 42\.00 USD, is not paid/)
        .waitFor()
    }
    await open(project_id, '')
    await alerts().getByRole('link', { name: 'Change payment method' }).click()
    expect(await main().getByRole('link', { name: 'Create VM' }).count()).toBe(0)
    await main()
      .getByRole('table', { name: 'Invoices' })
      .getByRole('row', { name: /due.*42\.00 USD$/ })
      .waitFor()
    await alerts().getByRole('button', { name: 'Change payment method' }).waitFor()
    await main().getByText('Visa ending in 4242').waitFor()
    expect(await main().getByRole('button', { name: 'Open billing' }).count()).toBe(0)
    await main()
      .getByRole('table', { name: 'Invoices' })
      .getByRole('row', { name: /open.*\d\.\d\d USD so far$/ })
      .waitFor()
    expect(await main().getByText('so far').count()).toBe(1)
    await screenshot(scene.page, 'billing-declined-light')
    const seeInvoice = alerts().getByRole('button', { name: 'View invoice' })
    const [invoice] = await Promise.all([scene.page.context().waitForEvent('page'), seeInvoice.click()])
    await invoice.getByText(invoiceId).waitFor()
    await invoice.getByText('1.000 VM-hours').waitFor()
    await invoice.getByRole('link', { name: 'Back to billing' }).click()
    await invoice.getByText(/The invoice for [A-Z][a-z]+ \d{4}, 42\.00 USD, is not paid/).waitFor()
    await invoice.close()
    const period = main().getByRole('row', { name: /due/ }).getByRole('button')
    const [same] = await Promise.all([scene.page.context().waitForEvent('page'), period.click()])
    await same.getByText(invoiceId).waitFor()
    await same.close()

    const operator = await openTab(await scene.browser.newContext())
    const { page } = operator
    await signInAsOperator(page, service)
    await visit(page, '/fleet/organizations')
    const row = page.getByRole('row', { name: /^Money .*card declined 1 invoice due/ })
    await row.waitFor()
    await row.getByRole('link', { name: /^\d+ VMs? of Money$/ }).waitFor()
    await screenshot(page, 'organizations-declined-light')
    await page.getByRole('button', { name: /^Alerts: [1-9]/ }).waitFor()
    await page.context().close()
    await service.sql(`UPDATE organizations SET payment_state = 'active' WHERE id = $1`, [organization_id])
    expect(operator.complaints).toEqual([])
  })

  test('an operator finds a tenant’s VM by search, on its host, in the VM list and in the audit log', async () => {
    const { service } = scene
    const project_id = takeProject(service)
    const vm = await createVm(service, 'somebodys', 'a100.1x', project_id)
    const operator = await openTab(await scene.browser.newContext({ viewport: { width: 1440, height: 900 } }))
    const { page } = operator
    await signInAsOperator(page, service)
    await visit(page, '/fleet/vms')
    const row = page.getByRole('row', {
      name: /somebodys running a100\.1x Money \/ project-\d+ \S+ · us-east1-a/,
    })
    await row.waitFor()
    await screenshot(page, 'fleet-vms-found-light')
    await row.getByRole('link').nth(1).click()
    await page.getByRole('table', { name: 'VMs' }).getByRole('link', { name: 'somebodys' }).click()
    await page.waitForURL((url) => url.pathname === `/fleet/vms/${vm.id}`)
    await page.getByRole('main').getByRole('link', { name: 'Money', exact: true }).waitFor()
    await page.getByRole('heading', { level: 1 }).click()
    await page.keyboard.press('/')
    await page.getByRole('combobox', { name: /^Search/ }).fill('somebod')
    await page.getByRole('option', { name: /somebodys.*VM/ }).waitFor()
    await page.keyboard.press('Escape')
    await visit(page, '/fleet/audit')
    const { name } = await service.asOwner.projectGet({ project_id })
    await page.getByLabel('Tenant').selectOption(`Money / ${name}`)
    await page.getByRole('row', { name: new RegExp(`VM created.* Money / ${name}`) }).waitFor()
    await page.getByLabel('Type').selectOption('vm.running')
    await page.getByRole('row', { name: /VM running.*somebodys/ }).waitFor()
    await screenshot(page, 'fleet-audit-filtered-light')
    expect(operator.complaints).toEqual([])
    await page.context().close()
  })
})
