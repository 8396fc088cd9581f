import { eventually } from '@slipway/testing/eventually.ts'
import { expect, onTestFinished, test } from 'vitest'
import {
  closeSecret,
  createVm,
  expectNoComplaints,
  inBothThemes,
  modalOf,
  openInvitation,
  openTab,
  result,
  visit,
} from '../../support/browser.ts'
import { startEmptyService } from '../../support/service.ts'
import type { Operator } from './operator.ts'

/** Tests of operations, tenants, quotas, prices and images. */
export function serviceTests(operator: Operator): void {
  const { main, dialog, openTabOf } = operator

  test('a stuck operation can be retried or abandoned', async () => {
    const { service, page } = operator
    await service.sql(
      `INSERT INTO simulated_faults (method, kind, delay_ms, remaining) VALUES ('removeVm', 'fail', 0, 1000)`,
    )
    await openTabOf('Operations')
    await main().getByText('No stuck operations.').waitFor()
    await makeStuck('left-over-1')
    const row = (name: RegExp) => main().getByRole('row', { name })
    await row(/Delete VM left-over-1 Operator \/ default.*stuck.*removeVm failed/).waitFor()
    expect(await inBothThemes(page, 'fleet-stuck')).toEqual([])
    // The buttons stay visible and uncovered if the table is wider than its frame.
    await page.setViewportSize({ width: 800, height: 860 })
    await expect.poll(() => main().getByRole('button', { name: 'Abandon' }).evaluate(isOnTop)).toBe(true)
    await main().getByRole('button', { name: 'Abandon' }).click()
    await dialog().getByRole('button', { name: 'Abandon operation' }).click()
    await result(page, 'Abandoned: Delete VM').waitFor()
    await main().getByText('No stuck operations.').waitFor()

    await makeStuck('left-over-2')
    await main().getByRole('button', { name: 'Retry' }).waitFor()
    await main().getByRole('link', { name: 'Delete VM' }).click()
    await page.getByRole('heading', { level: 1, name: 'Delete VM left-over-2' }).waitFor()
    await main().getByRole('status').getByText('removeVm failed').waitFor()
    await main()
      .getByText(/^in \d/)
      .first()
      .waitFor()
    expect(await inBothThemes(page, 'fleet-operation')).toEqual([])
    // The engine still fails, so the page shows the new attempt, and then that the operation is stuck again.
    await service.sql(`UPDATE operations SET last_error = 'earlier error' WHERE is_stuck`)
    await main().getByRole('button', { name: 'Retry' }).click()
    await result(page, 'Retrying: Delete VM').waitFor()
    await main().getByRole('status').getByText('removeVm failed').waitFor()
    await main().getByRole('button', { name: 'Retry' }).waitFor()
    await visit(page, '/fleet/operations')
    await service.sql('DELETE FROM simulated_faults')
    await main().getByRole('button', { name: 'Retry' }).click()
    await result(page, 'Retrying: Delete VM').waitFor()
    // A retried operation stays in the list.
    await row(/Delete VM left-over-2.*succeeded/).waitFor()
    await main().getByLabel('Show').selectOption('All tenants’ operations')
    await row(/Delete VM left-over-2.*succeeded/)
      .first()
      .waitFor()
    await row(/Delete VM left-over-1.*failed/)
      .first()
      .waitFor()
  })

  /** Creates a VM whose deletion is stuck, because the engine keeps failing. */
  async function makeStuck(name: string) {
    const { service } = operator
    const { id, project_id } = await createVm(service, name, 'a40.1x')
    const { operation } = await service.tenant.vmDelete({ project_id, vm_id: id })
    // Change the row between two attempts: an attempt in progress overwrites the time.
    await eventually(async () => {
      const late = await service.sql(
        `WITH due AS (
           UPDATE operation_queue q SET run_at = slipway_now() FROM operations o
           WHERE q.operation_id = $1 AND o.id = $1 AND o.attempts > 0 AND q.lease_token IS NULL
           RETURNING q.operation_id)
         UPDATE operations SET started_at = started_at - interval '1 day'
         WHERE id IN (SELECT operation_id FROM due) RETURNING id`,
        [operation.operation_id],
      )
      return late.length > 0
    })
  }

  test('an operator creates an organization and invites its owner', async () => {
    await openTabOf('Organizations')
    await main().getByRole('button', { name: 'Create organization' }).click()
    await dialog().getByLabel('Name').fill('Breakwater Works')
    await dialog().getByRole('button', { name: 'Create organization' }).click()
    await main()
      .getByRole('row', { name: /Breakwater Works.*active/ })
      .waitFor()
    await openTabOf('Users')
    await main().getByRole('button', { name: 'Add user' }).click()
    await dialog().getByLabel('E-mail').fill('ada@operator.example')
    await dialog().getByLabel('Organization').selectOption('Breakwater Works')
    await dialog().getByLabel('Role').selectOption('owner')
    await dialog().getByRole('button', { name: 'Add user' }).click()
    const inviteUrl =
      (await dialog()
        .getByText(/\/accept#code=/)
        .textContent()) ?? ''
    await closeSecret(dialog())
    const owner = await openTab(await operator.browser.newContext())
    await openInvitation(owner.page, inviteUrl, 'analytical-engine')
    await owner.page.getByRole('main').getByText('No projects yet').waitFor()
    await owner.page.getByRole('main').getByRole('button', { name: 'Create project' }).click()
    await modalOf(owner.page).getByLabel('Name').fill('research')
    await modalOf(owner.page).getByRole('button', { name: 'Create project' }).click()
    await owner.page.getByRole('heading', { level: 1, name: 'Getting started' }).waitFor()

    const user = main().getByRole('row', { name: /ada@operator\.example/ })
    await user.getByText('active').waitFor()
    await user.getByRole('button', { name: 'Suspend' }).click()
    await dialog().getByText('The user will be signed out everywhere immediately.').waitFor()
    await dialog().getByRole('button', { name: 'Suspend user' }).click()
    await user.getByText('suspended').waitFor()
    await owner.page.getByRole('heading', { name: 'Your session has ended' }).waitFor()
    await user.getByRole('button', { name: 'Restore' }).click()
    await user.getByText('active').waitFor()
    expectNoComplaints(owner)
    await owner.page.context().close()
  })

  test('no column of the fleet lists is cut off at a width of 768 px', async () => {
    const { service, page } = operator
    await createVm(service, 'listed', 'a40.1x')
    await page.setViewportSize({ width: 768, height: 1024 })
    for (const [name, title] of [
      ['VMs', 'VMs of all tenants'],
      ['Organizations', 'Organizations'],
      ['Users', 'Users'],
    ] as const) {
      await openTabOf(name)
      const table = main().getByRole('table', { name: title })
      await table.getByRole('row').nth(1).waitFor()
      await expect.poll(() => table.getAttribute('data-cut'), { message: name }).toBe('')
    }
  })

  test('quotas are set for an organization and a project, which are found by name', async () => {
    const { service, page } = operator
    const { id } = await service.operator.adminOrganizationCreate({ name: 'Quay Works' })
    const member = { email: service.email, organization_id: id, role: 'owner' as const }
    const { invite_url } = await service.operator.adminUserCreate(member)
    await service.asOwner.authAccept({ code: invite_url.split('#code=')[1]! })
    await service.asOwner.projectCreate({ name: 'research', organization_id: id })
    const projectsRead = page.waitForResponse((response) => response.url().includes('/admin/projects'))
    await openTabOf('Quotas')
    await projectsRead
    const picker = main().getByRole('combobox', { name: 'Project' })
    await picker.fill('quay')
    const option = page.getByRole('option', { name: /research.*Quay Works/ })
    await option.waitFor()
    expect(await page.getByRole('option').count()).toBe(1)
    await option.click()
    const limitOf = (holder: string) => main().getByLabel(`A100 40GB GPUs of ${holder}`)
    const setFor = async (holder: string, max: string) => {
      await limitOf(holder).fill(max)
      await main()
        .getByRole('button', { name: `Set quotas of ${holder}` })
        .click()
      await result(page, `Changed quotas of ${holder}`).waitFor()
    }
    await expect.poll(() => limitOf('Quay Works').inputValue()).toBe('8')
    expect(await main().getByLabel('Disk (GiB) of Quay Works').inputValue()).toMatch(/^\d+,\d{3}$/)
    for (const button of await main()
      .getByRole('button', { name: /^Set quotas/ })
      .all())
      expect(await button.evaluate(isOnTop)).toBe(true)
    await setFor('Quay Works', '24')
    await expect.poll(() => limitOf('research').inputValue()).toBe('24')
    await setFor('research', '12')
    await page.reload()
    await expect.poll(() => limitOf('Quay Works').inputValue()).toBe('24')
    await expect.poll(() => limitOf('research').inputValue()).toBe('12')
    expect(await picker.inputValue()).toBe('Quay Works / research')
  })

  test('tenants see the price that an operator sets', async () => {
    const { service, page } = operator
    onTestFinished(async () => {
      await service.operator.adminPriceSet({ items: [{ product_name: 'a40.1x', unit: 'vm_hour', usd: 0.9 }] })
    })
    await openTabOf('Prices')
    await main().getByLabel('Price of a40.1x, USD per VM-hour').fill('0.95')
    await main().getByLabel('Price of reserved-address, USD per hour without a running VM').fill('0.004')
    await main().getByRole('button', { name: 'Set prices' }).click()
    await dialog().getByText('→ 0.95 USD').waitFor()
    await dialog().getByText('not set → 0.004 USD').waitFor()
    await dialog().getByRole('button', { name: 'Apply now' }).click()
    await result(page, 'Prices changed').waitFor()
    const { items } = await service.tenant.priceList({ project_id: service.project_id })
    const priceOf = (name: string) => items.find(({ product_name }) => product_name === name)?.usd
    expect([priceOf('a40.1x'), priceOf('reserved-address')]).toEqual([0.95, 0.004])
  })

  test('an image is registered, made available in locations, and removed', async () => {
    await openTabOf('Images')
    await main().getByRole('button', { name: 'Register image' }).click()
    await dialog().getByLabel('Name').fill('debian13:latest')
    await dialog().getByLabel('us-east1-a').check()
    await dialog().getByRole('button', { name: 'Register image' }).click()
    const row = main().getByRole('row', { name: /debian13:latest/ })
    await row.getByText('us-east1-a').waitFor()
    await row.getByRole('button', { name: 'Locations of debian13:latest' }).click()
    await dialog().getByLabel('eu-north1-a').check()
    await dialog().getByRole('button', { name: 'Save changes' }).click()
    await row.getByText('us-east1-a, eu-north1-a').waitFor()
    await row.getByRole('button', { name: 'Remove debian13:latest' }).click()
    await dialog().getByRole('button', { name: 'Remove image' }).click()
    await row.waitFor({ state: 'detached' })
  })

  test('the first operator of an empty service is created with the printed code', async () => {
    const empty = await startEmptyService()
    const first = await openTab(await operator.browser.newContext())
    await first.page.goto(`${empty.url}/setup`)
    const setUp = async (code: string) => {
      await first.page.getByLabel('Setup code').fill(code)
      await first.page.getByLabel('E-mail').fill('root@example.com')
      await first.page.getByLabel('Password').fill('first-light')
      await first.page.getByRole('button', { name: 'Create operator' }).click()
    }
    await setUp('slpc_wrong')
    await first.page.getByRole('alert').getByText('Request ID').waitFor()
    await setUp(empty.setupCode)
    await first.page.getByRole('heading', { level: 1, name: 'Map' }).waitFor()
    await first.page.getByRole('main').getByRole('heading', { name: 'us-east1-a' }).waitFor()
    expectNoComplaints(first)
    await first.page.context().close()
    await empty.close()
  })
}

/** Runs in the page. Returns whether a button is visible and not covered. */
function isOnTop(button: Element): boolean {
  const { left, right, top, bottom } = button.getBoundingClientRect()
  const corners = [
    [left + 3, top + 3],
    [right - 3, bottom - 3],
  ] as const
  return corners.every(([x, y]) => button.contains(document.elementFromPoint(x, y)))
}
