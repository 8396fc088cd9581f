import type { Vm } from '@slipway/sdk'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../../server/test/eventually.ts'
import {
  acceptInvitation,
  createVm,
  expectNoComplaints,
  inBothThemes,
  isBrowserMissing,
  openInvitation,
  openTab,
  result,
  screenshot,
  useConsole,
} from './support/browser.ts'
import { type Service, startEmptyService } from './support/service.ts'

const operator = { email: 'ops@example.com', is_operator: true }

describe.skipIf(isBrowserMissing)('an operator in the console', () => {
  const scene = useConsole()
  let service: Service
  let page: Page
  let vm: Vm
  beforeAll(async () => {
    ;({ service, page } = scene)
    vm = await createVm(service, 'train-7', 'a100.4x')
    await acceptInvitation(page, service, operator, 'harbour-pilot')
  })

  const main = () => page.getByRole('main')
  const dialog = () => page.getByRole('dialog')
  const openTabOf = (name: string) =>
    page.getByRole('navigation', { name: 'Fleet' }).getByRole('link', { name }).click()

  test('sees on the fleet map whose VM holds a GPU', async () => {
    const band = main().getByRole('region', { name: vm.location })
    const cells = band.getByRole('img', { name: 'held by a VM, train-7, Demo / default' })
    await cells.first().waitFor()
    expect(await cells.count()).toBe(4)
    await cells.first().hover()
    await page.getByText('Demo / default', { exact: true }).waitFor()
    await screenshot(page, 'fleet-hover-light')
    await band.getByText('largest VM that fits: a100.8x').waitFor()
  })

  test('drains a host and sees it end when its last VM has gone', async () => {
    await main()
      .getByRole('region', { name: vm.location })
      .getByRole('link')
      .filter({ has: page.getByRole('img', { name: /train-7/ }) })
      .click()
    await page.getByRole('button', { name: 'Drain', exact: true }).click()
    await dialog().getByRole('button', { name: 'Drain host' }).click()
    await main().getByText('Draining: 1 VM left').waitFor()
    await main()
      .getByRole('table', { name: 'VMs' })
      .getByRole('row', { name: /train-7.*running.*Demo \/ default/ })
      .waitFor()
    expect(await inBothThemes(page, 'fleet-draining')).toEqual([])
    await service.tenant.vmDelete({ project_id: vm.project_id, vm_id: vm.id })
    // The GPUs are inspected first, and a busy machine looks less often.
    await main().getByText('drained', { exact: true }).waitFor({ timeout: 90_000 })
    await main().getByText('No VM lives here.').waitFor()
    await page.getByRole('button', { name: 'Cordon' }).click()
    await page.getByRole('button', { name: 'Open for new VMs' }).click()
    await main().getByText('up', { exact: true }).waitFor()
  }, 120_000)

  test('quarantines a GPU, finds it under capacity and sets it free', async () => {
    const row = main().getByRole('table', { name: 'GPUs' }).getByRole('row').nth(1)
    await row.getByRole('button', { name: 'Quarantine' }).click()
    await row.getByText('quarantined').waitFor()
    await openTabOf('Capacity')
    const list = main().getByRole('table', { name: 'Quarantined and lost GPUs' })
    await list.getByRole('button', { name: 'Set free' }).click()
    await main().getByText('None: every GPU is free').waitFor()
    const capacity = main().getByRole('table', { name: 'Capacity' })
    await capacity.getByRole('row', { name: /us-east1-a a100 16 0 0 16 a100\.8x 0 %/ }).waitFor()
  })

  test('tries a stuck operation again, and gives another up', async () => {
    await service.sql(
      `INSERT INTO simulated_faults (method, kind, delay_ms, remaining) VALUES ('removeVm', 'fail', 0, 1000)`,
    )
    await openTabOf('Operations')
    await main().getByText('Nothing is stuck.').waitFor()
    await makeStuck('left-over-1')
    const row = (name: RegExp) => main().getByRole('row', { name })
    await row(/Delete VM.*Demo \/ default.*stuck.*removeVm failed/).waitFor()
    expect(await inBothThemes(page, 'fleet-stuck')).toEqual([])
    await main().getByRole('button', { name: 'Abandon' }).click()
    await dialog().getByRole('button', { name: 'Abandon operation' }).click()
    await result(page, 'Gave up: Delete VM').waitFor()
    await main().getByText('Nothing is stuck.').waitFor()

    await makeStuck('left-over-2')
    await main().getByRole('button', { name: 'Retry' }).waitFor()
    await service.sql('DELETE FROM simulated_faults')
    await main().getByRole('button', { name: 'Retry' }).click()
    await result(page, 'Delete VM is tried again').waitFor()
    await main().getByText('Nothing is stuck.').waitFor()
    await main().getByLabel('Show').selectOption('All tenants’ operations')
    await row(/Delete VM.*succeeded/)
      .first()
      .waitFor()
    await row(/Delete VM.*failed/)
      .first()
      .waitFor()
  })

  /** A deletion that the engine refuses until its time is over. */
  async function makeStuck(name: string) {
    const { id, project_id } = await createVm(service, name, 'a40.1x')
    const { operation } = await service.tenant.vmDelete({ project_id, vm_id: id })
    await eventually(async () => {
      const [row] = await service.sql<{ attempts: number }>('SELECT attempts FROM operations WHERE id = $1', [
        operation.operation_id,
      ])
      return row!.attempts > 0
    })
    await service.sql(
      `UPDATE operations SET deadline_at = slipway_now(), run_at = slipway_now() WHERE id = $1`,
      [operation.operation_id],
    )
  }

  test('makes an organization and its owner, who comes in by the link', async () => {
    await openTabOf('Organizations')
    await main().getByRole('button', { name: 'Create organization' }).click()
    await dialog().getByLabel('Name').fill('Harbour Labs')
    await dialog().getByRole('button', { name: 'Create organization' }).click()
    await main()
      .getByRole('row', { name: /Harbour Labs.*active/ })
      .waitFor()
    await openTabOf('Users')
    await main().getByRole('button', { name: 'Add user' }).click()
    await dialog().getByLabel('E-mail').fill('ada@example.com')
    await dialog().getByLabel('Organization').selectOption('Harbour Labs')
    await dialog().getByRole('button', { name: 'Add user' }).click()
    const inviteUrl =
      (await dialog()
        .getByText(/\/accept\?code=/)
        .textContent()) ?? ''
    await dialog().getByRole('button', { name: 'I have stored it' }).click()
    const owner = await openTab(await scene.browser.newContext())
    await openInvitation(owner.page, inviteUrl, 'analytical-engine')
    await owner.page.getByRole('main').getByText('No project yet').waitFor()
    await owner.page.getByRole('main').getByRole('button', { name: 'Create project' }).click()
    await owner.page.getByRole('dialog').getByLabel('Name').fill('research')
    await owner.page.getByRole('dialog').getByRole('button', { name: 'Create project' }).click()
    await owner.page.getByText('Add a payment method to use this project').waitFor()

    const user = main().getByRole('row', { name: /ada@example\.com/ })
    await user.getByRole('button', { name: 'Suspend' }).click()
    await user.getByText('suspended').waitFor()
    await owner.page.getByText('The session has ended.').waitFor()
    await user.getByRole('button', { name: 'Restore' }).click()
    await user.getByText('active').waitFor()
    expectNoComplaints(owner)
    await owner.page.context().close()
  })

  test('finds a project by its name and sets its quotas', async () => {
    await openTabOf('Quotas')
    // What was read before the project was made may still be in sight for a moment.
    await page.reload()
    const picker = main().getByRole('combobox', { name: 'Project' })
    await picker.fill('harbour')
    const option = page.getByRole('option', { name: /research.*Harbour Labs/ })
    await option.waitFor()
    expect(await page.getByRole('option').count()).toBe(1)
    await option.click()
    const limit = main().getByLabel('A100 40GB GPUs')
    await expect.poll(() => limit.inputValue()).toBe('8')
    await limit.fill('24')
    await main().getByRole('button', { name: 'Set quotas' }).click()
    await result(page, 'Set the quotas').waitFor()
    await page.reload()
    await expect.poll(() => main().getByLabel('A100 40GB GPUs').inputValue()).toBe('24')
    expect(await picker.inputValue()).toBe('Harbour Labs / research')
  })

  test('sets a price that tenants see', async () => {
    await openTabOf('Prices')
    await main().getByLabel('Price of a40.1x, USD per VM and hour').fill('0.95')
    await main().getByRole('button', { name: 'Set prices' }).click()
    await result(page, 'Set the prices, valid from now').waitFor()
    const { items } = await service.tenant.priceList({ project_id: service.credentials.project_id })
    expect(items.find(({ product_name }) => product_name === 'a40.1x')?.usd).toBe(0.95)
  })

  test('imports an image, says where it can be used, and removes it', async () => {
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

  test('registers a host, and finds all of this in the audit log', async () => {
    await openTabOf('Map')
    await main().getByRole('button', { name: 'Register host' }).first().click()
    await dialog().getByLabel('Name').fill('rack4-1')
    await dialog().getByRole('button', { name: 'Register host' }).click()
    await main()
      .getByRole('link', { name: /rack4-1/ })
      .waitFor()
    await openTabOf('Audit log')
    await main()
      .getByRole('row', { name: /Host created.*rack4-1.*ops@example\.com/ })
      .waitFor()
  })

  test('begins an empty service with the code that it printed', async () => {
    const empty = await startEmptyService()
    const first = await openTab(await scene.browser.newContext())
    await first.page.goto(`${empty.url}/setup`)
    const setUp = async (code: string) => {
      await first.page.getByLabel('Set-up code').fill(code)
      await first.page.getByLabel('E-mail').fill('root@example.com')
      await first.page.getByLabel('Password').fill('first-light')
      await first.page.getByRole('button', { name: 'Create the operator' }).click()
    }
    await setUp('slpc_wrong')
    await first.page.getByRole('alert').getByText('Request id').waitFor()
    await setUp(empty.setupCode)
    await first.page.getByRole('heading', { level: 1, name: 'Fleet' }).waitFor()
    await first.page.getByRole('main').getByRole('heading', { name: 'us-east1-a' }).waitFor()
    expectNoComplaints(first)
    await first.page.context().close()
    await empty.close()
  })

  test('met no script error and no breach of the Content-Security-Policy', () =>
    expectNoComplaints(scene.tab))
})
