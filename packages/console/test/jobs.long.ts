import { eventually } from '@slipway/testing/eventually.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import type { Page } from 'playwright-core'
import { afterAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import {
  closeShared,
  createVm,
  isBrowserMissing,
  modalOf,
  pressChord,
  result,
  useConsole,
  visit,
  vmRequest,
  waitUntilLoaded,
} from './support/browser.ts'
import { removeVms, type Service } from './support/service.ts'

afterAll(closeShared)

/**
 * Runs in the page. Counts mouse presses. A choice from a list also counts: a user presses the mouse for it, but
 * Playwright does not.
 */
function countClicks(): void {
  const counter = window as unknown as { clicks?: number }
  const isCounting = counter.clicks !== undefined
  counter.clicks = 0
  if (isCounting) return
  const add = () => {
    counter.clicks = (counter.clicks ?? 0) + 1
  }
  window.addEventListener('pointerdown', add, true)
  window.addEventListener('change', ({ target }) => target instanceof HTMLSelectElement && add(), true)
}

/**
 * The most common jobs in the console. Each starts on the project overview and has a maximum number of clicks. A
 * change to the console that makes a job need more clicks fails here.
 */
describe.skipIf(isBrowserMissing)('the most common jobs in the console', () => {
  const scene = useConsole('Jobs', 'owner and operator')
  let page: Page
  let service: Service
  beforeEach(async () => {
    page = scene.page
    service = scene.service
    await page.evaluate(countClicks)
    await visit(page, `/projects/${service.project_id}`)
    await main().getByRole('heading', { level: 1 }).waitFor()
    onTestFinished(() => removeVms(service))
  })
  const main = () => page.getByRole('main')
  const dialog = () => modalOf(page)
  const goTo = (name: string) =>
    page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name }).click()
  const openTab = (list: string, name: string) =>
    page.getByRole('navigation', { name: list }).getByRole('link', { name, exact: true }).click()
  const button = (name: string | RegExp) => main().getByRole('button', { name })
  const submit = (name: string) => dialog().getByRole('button', { name }).click()
  const clicks = () => page.evaluate(() => (window as unknown as { clicks: number }).clicks)
  async function expectClicks(max: number): Promise<void> {
    const count = await clicks()
    expect(count, 'clicks are counted').toBeGreaterThan(0)
    expect(count, 'clicks').toBeLessThanOrEqual(max)
  }
  /** Makes the engine fail until the test ends. */
  async function addFault(method: string, kind: 'fail' | 'reject'): Promise<void> {
    await service.sql(
      'INSERT INTO simulated_faults (method, kind, delay_ms, remaining) VALUES ($1, $2, 0, 1000)',
      [method, kind],
    )
    onTestFinished(async () => {
      await service.sql('DELETE FROM simulated_faults')
    })
  }

  test('create the first VM: 2 clicks', async () => {
    await main().getByRole('link', { name: 'Create VM' }).first().click()
    await page.getByLabel('SSH public key').fill(sshKey)
    await page
      .getByRole('complementary', { name: 'Summary' })
      .getByRole('button', { name: 'Create VM' })
      .click()
    await result(page, / is running$/).waitFor()
    await expectClicks(2)
  })

  test('find out why a creation failed: 2 clicks', async () => {
    const { project_id } = service
    await addFault('ensureVm', 'reject')
    await eventually(async () => {
      const { operation } = await service.asOwner.vmCreate({ project_id }, vmRequest('unlucky', 'a40.1x'))
      const ended = await service.asOwner.wait({ project_id }, operation).catch((error) => error)
      return ended instanceof Error
    })
    await page.getByRole('button', { name: /^Alerts: [1-9]/ }).click()
    await page.getByRole('menuitem', { name: /^unlucky could not be created/ }).click()
    await main().getByRole('heading', { level: 1, name: 'unlucky' }).waitFor()
    await main().getByText('Creation failed; everything was cleaned up').waitFor()
    await expectClicks(2)
  })

  test('stop the most expensive VM: 5 clicks', async () => {
    await createVm(service, 'cheap', 'a40.1x')
    await createVm(service, 'expensive', 'a100.4x')
    await goTo('VMs')
    await main()
      .getByRole('button', { name: /^USD\/h/ })
      .click()
    const first = main().getByRole('table', { name: 'VMs' }).getByRole('row').nth(1)
    await expect.poll(() => first.textContent()).toContain('expensive')
    await first.getByRole('link', { name: 'expensive' }).click()
    await button('Stop').click()
    await dialog()
      .getByText(/this saves 5\.80 USD\/h/)
      .waitFor()
    await submit('Stop VM')
    await result(page, 'Stopped expensive').waitFor()
    await expectClicks(5)
  })

  test('open a port to my own address: 4 clicks', async () => {
    await goTo('Network')
    await button('Create rule').click()
    await dialog().getByRole('button', { name: 'Jupyter 8888' }).click()
    await submit('Create rule')
    await result(page, 'Rule allow-jupyter is active').waitFor()
    await expectClicks(4)
    const rules = await service.asOwner.collect('firewallRuleList', { project_id: service.project_id })
    expect(rules.find(({ name }) => name === 'allow-jupyter')!.sources[0]!.cidr).toBe('127.0.0.1')
  })

  test('resize a disk and attach it: 6 clicks', async () => {
    const { project_id } = service
    await createVm(service, 'holder', 'a40.1x')
    const disk = { name: 'datasets', size: '10GiB', location: 'us-east1-a' }
    const { operation } = await service.asOwner.diskCreate({ project_id }, disk)
    await service.asOwner.wait({ project_id }, operation)
    await goTo('Disks')
    const row = main().getByRole('row', { name: /datasets/ })
    await row.getByRole('button', { name: 'Actions for datasets' }).click()
    await page.getByRole('menuitem', { name: 'Resize' }).click()
    await dialog().getByLabel('New size (GiB)').fill('20')
    await submit('Resize disk')
    await result(page, 'Resized datasets to 20 GiB').waitFor()
    await row.getByRole('button', { name: /^Attach/ }).click()
    await submit('Attach disk')
    await result(page, 'Attached datasets to holder').waitFor()
    await expectClicks(6)
  })

  test('invite a viewer: 5 clicks', async () => {
    await goTo('Settings')
    await openTab('Settings', 'Members')
    await button('Invite member').click()
    await dialog().getByLabel('E-mail').fill('viewer@jobs.example')
    await dialog().getByLabel('Role').selectOption('viewer')
    await submit('Invite')
    await dialog()
      .getByText(/\/accept#code=/)
      .waitFor()
    await expectClicks(5)
  })

  test('create an access key that can only read: 3 clicks', async () => {
    await goTo('Settings')
    await button('Create project key').first().click()
    await dialog().getByLabel('Name').fill('ci')
    await submit('Create key')
    await dialog().getByText(/^slp_/).waitFor()
    await expectClicks(3)
    const keys = await service.asOwner.collect('accessKeyList', { project_id: service.project_id })
    const key = keys.find(({ name }) => name === 'ci')!
    expect(key.role).toBe('read')
    expect(Date.parse(key.expires_at) - Date.now()).toBeLessThan(91 * 86_400_000)
  })

  test('set a budget: 3 clicks', async () => {
    await goTo('Settings')
    await openTab('Settings', 'Billing and budget')
    await main().getByLabel('Monthly limit (USD)').fill('500')
    await button('Save budget').click()
    await result(page, /^Budget set to 500/).waitFor()
    await expectClicks(3)
  })

  test('find a free 8-GPU host, drain it, and retry a stuck operation: 9 clicks', async () => {
    const { project_id } = service
    const vm = await createVm(service, 'left-over', 'a40.1x')
    await goTo('Fleet')
    await main().getByLabel('Free GPUs').selectOption('8')
    const host = main().getByRole('link').filter({ hasText: /^a100/ }).first()
    await host.click()
    await main().getByText('No VMs on this host.').waitFor()
    await button(/^Drain$/).click()
    await submit('Drain host')
    await result(page, / is drained$/).waitFor()
    await button('Uncordon').click()
    await result(page, /^Uncordoned /).waitFor()
    await addFault('removeVm', 'fail')
    const { operation } = await service.asOwner.vmDelete({ project_id, vm_id: vm.id })
    await eventually(async () => {
      await service.sql(
        `WITH due AS (
           UPDATE operation_queue q SET run_at = slipway_now() FROM operations o
           WHERE q.operation_id = $1 AND o.id = $1 AND o.attempts > 0 AND q.lease_token IS NULL
           RETURNING q.operation_id)
         UPDATE operations SET started_at = started_at - interval '1 day'
         WHERE id IN (SELECT operation_id FROM due)`,
        [operation.operation_id],
      )
      const { items } = await service.operator.adminOperationList({ stuck: true })
      return items.length > 0
    })
    await goTo('Fleet')
    await openTab('Fleet', 'Operations')
    await button('Retry').waitFor()
    await service.sql('DELETE FROM simulated_faults')
    await button('Retry').click()
    await result(page, 'Retrying: Delete VM').waitFor()
    await eventually(async () => (await service.operator.adminVmList({ ids: vm.id })).items.length === 0)
    await expectClicks(9)
  })

  test('create, find and stop a VM with the keyboard only: no click', async () => {
    await page.keyboard.press('c')
    await page.getByRole('heading', { level: 1, name: 'Create VM' }).waitFor()
    await page.getByLabel('SSH public key').focus()
    await page.keyboard.insertText(sshKey)
    await page.getByLabel('Name', { exact: true }).focus()
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.insertText('typed')
    const create = page
      .getByRole('complementary', { name: 'Summary' })
      .getByRole('button', { name: 'Create VM', disabled: false })
    await create.waitFor()
    await create.press('Enter')
    await result(page, 'typed is running').waitFor()
    await pressChord(page, 'g', 'o')
    await page.getByRole('heading', { level: 1, name: 'default' }).waitFor()
    await page.keyboard.press('/')
    await page.getByRole('combobox', { name: /^Search/ }).fill('typed')
    await page
      .getByRole('option', { name: /^typed/ })
      .first()
      .waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'typed' }).waitFor()
    await button('Stop').press('Enter')
    // Cancel has the focus, so that Enter does not confirm.
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await result(page, 'Stopped typed').waitFor()
    expect(await clicks()).toBe(0)
  })

  test('continue after the connection was lost: 4 clicks', async () => {
    const vm = await createVm(service, 'far', 'a40.1x')
    await main().getByRole('link', { name: 'far', exact: true }).click()
    // The code of the page is loaded in parts. All parts must be loaded before the connection is lost.
    await button('Stop').waitFor()
    await waitUntilLoaded(page)
    await service.stop()
    try {
      await page.getByRole('banner').getByText('Reconnecting', { exact: true }).waitFor()
      await button('Stop').click()
      await submit('Stop VM')
      await result(page, 'Could not stop far').waitFor()
    } finally {
      await service.start()
    }
    await page.getByRole('banner').getByText('Live', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Try again', includeHidden: true }).click()
    await result(page, 'Stopped far').waitFor()
    const { state } = await service.asOwner.vmGet({ project_id: vm.project_id, vm_id: vm.id })
    expect(state).toBe('STATE_SHUTOFF')
    await expectClicks(4)
  })

  test('understand an error and correct it: 5 clicks', async () => {
    await goTo('Network')
    await openTab('Network', 'Networks')
    await button('Create network').first().click()
    await dialog().getByLabel('Name').fill('lab')
    await dialog().getByLabel('CIDR block').fill('172.27.0.0/24')
    await submit('Create network')
    await dialog().getByRole('alert').getByText('Request ID').waitFor()
    await dialog().getByLabel('CIDR block').fill('10.20.0.0/16')
    await submit('Create network')
    await result(page, 'Created network lab').waitFor()
    await expectClicks(5)
  })
})
