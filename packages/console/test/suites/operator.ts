import { eventually } from '@slipway/testing/eventually.ts'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import {
  createVm,
  expectNoComplaints,
  inBothThemes,
  isBrowserMissing,
  modalOf,
  openInvitation,
  openTab,
  result,
  screenshot,
  signIn,
  useConsole,
  visit,
} from '../support/browser.ts'
import { type Service, startEmptyService } from '../support/service.ts'

describe.skipIf(isBrowserMissing)('an operator in the console', () => {
  const scene = useConsole('Operator', 'operator')
  let service: Service
  let page: Page
  beforeEach(async () => {
    ;({ service, page } = scene)
    await visit(page, '/fleet')
  })

  const main = () => page.getByRole('main')
  const dialog = () => modalOf(page)
  const leaveHost = () =>
    page.getByRole('navigation', { name: 'Breadcrumbs' }).getByRole('link', { name: 'Fleet' }).click()
  const openTabOf = (name: string) =>
    page.getByRole('navigation', { name: 'Fleet' }).getByRole('link', { name }).click()

  test('the fleet map names the VM of a GPU and its tenant', async () => {
    const vm = await createVm(service, 'holder', 'a100-80gb.4x')
    const band = main().getByRole('region', { name: vm.location })
    const cells = band.getByRole('img', { name: 'claimed, holder, Operator / default' })
    await cells.first().waitFor()
    expect(await cells.count()).toBe(4)
    // Claimed GPUs are grey.
    const [red, green, blue] = await cells.first().evaluate(paintOf)
    expect(Math.max(red!, green!, blue!) - Math.min(red!, green!, blue!)).toBeLessThan(30)
    await cells.first().hover()
    await page.getByText('Operator / default', { exact: true }).waitFor()
    await screenshot(page, 'fleet-hover-light')
    await band.getByText('largest available type: a100-80gb.8x').waitFor()
    // The order of the configuration.
    expect(await main().getByRole('heading', { level: 2 }).allTextContents()).toEqual([
      'us-east1-a',
      'eu-north1-a',
    ])
  })

  test('a draining host is drained when its last VM is deleted', async () => {
    const vm = await createVm(service, 'train-7', 'l40s-48gb.4x')
    await main()
      .getByRole('region', { name: vm.location })
      .getByRole('link')
      .filter({ has: page.getByRole('img', { name: /train-7/ }) })
      .click()
    const drain = async () => {
      await page.getByRole('button', { name: 'Drain', exact: true }).click()
      await dialog().getByRole('button', { name: 'Drain host' }).click()
      await main().getByText('Draining: 1 of 1 VM left, on 4 GPUs').waitFor()
      // The progress counts VMs, not free GPUs.
      const progress = main().getByRole('progressbar', { name: 'VMs removed' })
      expect(await progress.getAttribute('aria-valuenow')).toBe('0')
      await main()
        .getByText(/^draining \d+ (s|min)$/)
        .waitFor()
    }
    await main()
      .getByText(
        'Only a host that is down can be forgotten. The host still has 1 VM. Delete all VMs before you remove it.',
      )
      .waitFor()
    await drain()
    await page.getByRole('button', { name: 'End drain' }).click()
    await result(page, /^Uncordoned /).waitFor()
    await result(page, / is draining$/).waitFor({ state: 'detached' })
    await main().getByText('up', { exact: true }).waitFor()
    await drain()
    await main().getByRole('table', { name: 'GPUs' }).getByText('claimed').first().waitFor()
    await main()
      .getByRole('table', { name: 'VMs' })
      .getByRole('row', { name: /train-7.*running.*Operator \/ default/ })
      .waitFor()
    expect(await inBothThemes(page, 'fleet-draining')).toEqual([])
    await service.tenant.vmDelete({ project_id: vm.project_id, vm_id: vm.id })
    // The GPUs are inspected first, which takes longer on a busy machine.
    await main().getByText('drained', { exact: true }).waitFor({ timeout: 90_000 })
    await main().getByText('No VMs on this host.').waitFor()
    await page.getByRole('button', { name: 'Uncordon' }).click()
    await main().getByText('up', { exact: true }).waitFor()
  }, 240_000)

  test('a quarantined GPU is listed under capacity and can be released', async () => {
    const hosts = await service.operator.collect('adminHostList', {})
    const host = hosts.find(
      ({ location, gpus }) => location === 'us-east1-a' && gpus[0]?.model === 'A100 40GB PCIe',
    )!
    await main().getByRole('link', { name: host.name }).click()
    const row = main().getByRole('table', { name: 'GPUs' }).getByRole('row').nth(1)
    await row.getByRole('button', { name: 'Quarantine' }).click()
    await row.getByText('quarantined').waitFor()
    await leaveHost()
    await openTabOf('Capacity')
    // GPUs of deleted VMs may still be quarantined.
    const list = main().getByRole('table', { name: 'Quarantined and missing GPUs' })
    const entry = list.getByRole('row', { name: new RegExp(`^${host.name} us-east1-a`) })
    await entry.getByRole('button', { name: 'Release' }).click()
    // The GPUs are inspected first, which takes longer on a busy machine.
    await main().getByText('No quarantined or missing GPUs.').waitFor({ timeout: 90_000 })
    const capacity = main().getByRole('table', { name: 'Capacity' })
    await capacity.getByRole('row', { name: /a100 us-east1-a 16( 0)+ 16 a100\.8x 0%/ }).waitFor()
  })

  test('GPUs of a cordoned host are not counted as free', async () => {
    const hosts = await service.operator.collect('adminHostList', {})
    const host = hosts.find(
      ({ location, gpus }) => location === 'us-east1-a' && gpus[0]?.model === 'L40S 48GB PCIe',
    )!
    const band = main().getByRole('region', { name: 'us-east1-a' })
    await service.operator.adminHostUpdate({ host_id: host.id }, { schedulable: false })
    onTestFinished(async () => {
      await service.operator.adminHostUpdate({ host_id: host.id }, { schedulable: true })
    })
    const count = host.gpus.length
    await band.getByText(`${count} of ${2 * count} GPUs free, ${count} unavailable`).waitFor()
    expect(await band.getByRole('img', { name: /^unavailable/ }).count()).toBe(count)
    await screenshot(page, 'fleet-cordoned-light')
    await openTabOf('Capacity')
    const row = main().getByRole('row', { name: new RegExp(`^l40s-48gb us-east1-a ${count} ${count} 0 0 `) })
    await row.waitFor()
  })

  test('fleet pages show a lost connection, and a tab that cannot be opened says so', async () => {
    const { page: tab } = await openTab(page.context())
    await tab.goto(`${service.url}/fleet`)
    const mark = (word: string) => tab.getByRole('banner').getByText(word, { exact: true })
    await mark('Live').waitFor()
    await tab.route('**/*', (route) => route.abort())
    await mark('Reconnecting').waitFor()
    await tab.getByRole('main').getByText('us-east1-a').first().waitFor()
    await tab.getByRole('link', { name: 'Prices' }).click()
    await tab.getByRole('alert').getByText('Slipway is not responding.').waitFor()
    await screenshot(tab, 'fleet-lost-light')
    await tab.unrouteAll({ behavior: 'ignoreErrors' })
    await tab.getByLabel(/^Price of a100\.1x/).waitFor()
    await tab.getByRole('alert').waitFor({ state: 'detached' })
    await mark('Live').waitFor()
    await tab.close()
  })

  test('announced maintenance and a drain reach the tenant on the VM page and in the bell', async () => {
    const vm = await createVm(service, 'guest', 'a100-80gb.4x')
    const hosts = await service.operator.collect('adminHostList', {})
    const host = hosts.find(({ vms }) => vms.some(({ id }) => id === vm.id))!
    await visit(page, `/fleet/hosts/${host.id}`)
    await main().getByRole('button', { name: 'Announce maintenance' }).click()
    await dialog().getByLabel('Begins at').fill('2099-12-01T06:00')
    await dialog().getByLabel('Note for tenants').fill('New power supplies')
    await dialog().getByRole('button', { name: 'Announce maintenance' }).click()
    await main()
      .getByText(/^Maintenance at .*: New power supplies$/)
      .waitFor()
    await main().getByRole('button', { name: 'Edit note' }).click()
    await dialog().getByLabel('Note').fill('The fan is loud')
    await dialog().getByRole('button', { name: 'Save note' }).click()
    await main().getByText('The fan is loud').waitFor()
    expect(await inBothThemes(page, 'host-maintenance')).toEqual([])
    const tenant = await openTab(await scene.browser.newContext())
    await signIn(tenant.page, service)
    await visit(tenant.page, `/projects/${vm.project_id}/vms/${vm.id}`)
    const notes = tenant.page.getByRole('main').getByRole('region', { name: 'Alerts' })
    await notes.getByText(/has maintenance at .* \(New power supplies\)\. Stop and start it/).waitFor()
    await screenshot(tenant.page, 'vm-maintenance-light')
    await tenant.page.getByRole('button', { name: /^Alerts: [1-9]/ }).click()
    await tenant.page.getByRole('menuitem', { name: /^The host of guest in .* has maintenance/ }).waitFor()
    await tenant.page.keyboard.press('Escape')
    await main().getByRole('button', { name: 'Cancel maintenance' }).click()
    await main().getByText('No maintenance is announced.').waitFor()
    await service.operator.adminHostDrain({ host_id: host.id })
    await tenant.page.getByText('Host will be taken out of service').waitFor()
    await notes.getByText(/will be taken out of service\. guest keeps running/).waitFor()
    await tenant.page.context().close()
    await service.operator.adminHostUpdate({ host_id: host.id }, { schedulable: true, note: '' })
  })

  test('a stuck operation can be retried or abandoned', async () => {
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
    await service.sql('DELETE FROM simulated_faults')
    await main().getByRole('button', { name: 'Retry' }).click()
    await result(page, 'Retrying: Delete VM').waitFor()
    await main().getByText('No stuck operations.').waitFor()
    await main().getByLabel('Show').selectOption('All tenants’ operations')
    await row(/Delete VM left-over-2.*succeeded/)
      .first()
      .waitFor()
    await row(/Delete VM left-over-1.*failed/)
      .first()
      .waitFor()
  })

  /** Creates a deletion that is stuck because the engine keeps failing. */
  async function makeStuck(name: string) {
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
    await dialog().getByRole('button', { name: 'Add user' }).click()
    const inviteUrl =
      (await dialog()
        .getByText(/\/accept#code=/)
        .textContent()) ?? ''
    await dialog().getByRole('button', { name: 'Done' }).click()
    const owner = await openTab(await scene.browser.newContext())
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
    await dialog().getByRole('button', { name: 'Suspend' }).click()
    await user.getByText('suspended').waitFor()
    await owner.page.getByRole('heading', { name: 'Your session has ended' }).waitFor()
    await user.getByRole('button', { name: 'Restore' }).click()
    await user.getByText('active').waitFor()
    expectNoComplaints(owner)
    await owner.page.context().close()
  })

  test('no column of the fleet lists is cut off at a width of 768 px', async () => {
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
    onTestFinished(async () => {
      await service.operator.adminPriceSet({ items: [{ product_name: 'a40.1x', unit: 'vm_hour', usd: 0.9 }] })
    })
    await openTabOf('Prices')
    await main().getByLabel('Price of a40.1x, USD per VM-hour').fill('0.95')
    await main().getByRole('button', { name: 'Set prices' }).click()
    await dialog().getByText('→ 0.95 USD').waitFor()
    await dialog().getByRole('button', { name: 'Apply now' }).click()
    await result(page, 'Prices changed').waitFor()
    const { items } = await service.tenant.priceList({ project_id: service.project_id })
    expect(items.find(({ product_name }) => product_name === 'a40.1x')?.usd).toBe(0.95)
  })

  test('an image is imported, made available in locations, and removed', async () => {
    await openTabOf('Images')
    await main().getByRole('button', { name: 'Import image' }).click()
    await dialog().getByLabel('Name').fill('debian13:latest')
    await dialog().getByLabel('us-east1-a').check()
    await dialog().getByRole('button', { name: 'Import image' }).click()
    const row = main().getByRole('row', { name: /debian13:latest/ })
    await row.getByText('us-east1-a').waitFor()
    await row.getByRole('button', { name: 'Locations of debian13:latest' }).click()
    await dialog().getByLabel('eu-north1-a').check()
    await dialog().getByRole('button', { name: 'Save' }).click()
    await row.getByText('us-east1-a, eu-north1-a').waitFor()
    await row.getByRole('button', { name: 'Remove debian13:latest' }).click()
    await dialog().getByRole('button', { name: 'Remove image' }).click()
    await row.waitFor({ state: 'detached' })
  })

  test('a host is registered, and the audit log names the operator', async () => {
    let showLocations = () => {}
    const isShown = new Promise<void>((resolve) => (showLocations = resolve))
    await page.route('**/admin/locations', (route) => isShown.then(() => route.continue()))
    // After a reload the locations are not loaded yet.
    await page.goto(`${service.url}/fleet`)
    await main().getByRole('button', { name: 'Register host' }).first().click()
    await dialog().getByLabel('Name').fill('rack4-1')
    const register = dialog().getByRole('button', { name: 'Register host' })
    expect(await register.isEnabled()).toBe(false)
    showLocations()
    await register.click()
    await main()
      .getByRole('link', { name: /rack4-1/ })
      .waitFor()
    await openTabOf('Audit log')
    await main()
      .getByRole('row', { name: /Host created.*rack4-1.*operator@slipway\.local/ })
      .waitFor()
  })

  test('the first operator of an empty service is created with the printed code', async () => {
    const empty = await startEmptyService()
    const first = await openTab(await scene.browser.newContext())
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
    await first.page.getByRole('heading', { level: 1, name: 'Fleet' }).waitFor()
    await first.page.getByRole('main').getByRole('heading', { name: 'us-east1-a' }).waitFor()
    expectNoComplaints(first)
    await first.page.context().close()
    await empty.close()
  })
})

/** Runs in the page. Returns the red, green and blue parts of an element's background. */
function paintOf(element: Element): number[] {
  const canvas = document.createElement('canvas').getContext('2d')!
  canvas.fillStyle = getComputedStyle(element).backgroundColor
  canvas.fillRect(0, 0, 1, 1)
  return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)]
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
