import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  closeSecret,
  createVm,
  inBothThemes,
  isBrowserMissing,
  modalOf,
  onNarrowScreen,
  result,
  useConsole,
  visit,
} from '../support/browser.ts'
import type { Service } from '../support/service.ts'

describe.skipIf(isBrowserMissing)('an owner who is an operator', () => {
  const scene = useConsole('Requests', 'owner and operator')
  let page: Page
  let service: Service
  beforeEach(() => {
    page = scene.page
    service = scene.service
  })
  const main = () => page.getByRole('main')
  const dialog = () => modalOf(page)

  test('a request for a higher quota is sent, withdrawn, restored by undo and approved from the alert', async () => {
    const { organization_id, project_id } = service
    const quotas = await service.asOwner.organizationQuotaList({ organization_id })
    const { max } = quotas.items.find(({ name }) => name === 'a100_gpus')!
    await visit(page, `/projects/${project_id}/settings/organization`)
    await main().getByRole('button', { name: 'Request higher quota' }).click()
    await dialog().getByLabel('Quota').selectOption('A100 40GB GPUs')
    await dialog()
      .getByLabel('New limit')
      .fill(String(max + 8))
    await dialog().getByLabel('Reason').fill('Training run in December')
    await dialog().getByRole('button', { name: 'Send request' }).click()
    await dialog().waitFor({ state: 'detached' })
    const requests = main().getByRole('table', { name: 'Quota requests' })
    await requests.getByText('open').waitFor()
    await requests.getByRole('button', { name: 'Withdraw A100 40GB GPUs' }).click()
    await requests.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Undo' }).click()
    await result(page, 'Undone: Withdrew the request for A100 40GB GPUs').waitFor()
    await requests.getByText('open').waitFor()
    expect(await inBothThemes(page, 'quota-request')).toEqual([])
    expect(await onNarrowScreen(page, 'quota-request')).toEqual([])

    await page.getByRole('button', { name: /^Alerts: [1-9]/ }).click()
    await page.getByRole('menuitem', { name: /^Requests requests a quota of/ }).click()
    await main().getByRole('button', { name: 'Approve A100 40GB GPUs of Requests' }).click()
    await dialog().getByLabel('Note for the organization (optional)').fill('New hosts arrive')
    await dialog().getByText('Show as CLI or curl').click()
    await dialog()
      .getByText(/slipway admin quota-request approve \S+ --note 'New hosts arrive'/)
      .waitFor()
    await dialog().getByRole('button', { name: 'Approve request' }).click()
    await result(page, 'Approved the request from Requests').waitFor()
    const changed = await service.asOwner.organizationQuotaList({ organization_id })
    expect(changed.items.find(({ name }) => name === 'a100_gpus')?.max).toBe(max + 8)
    await visit(page, `/projects/${project_id}/settings/organization`)
    await requests.getByText('Training run in December → New hosts arrive').waitFor()
  })

  test('additional alert recipients are set and removed', async () => {
    await visit(page, `/projects/${service.project_id}/settings/organization`)
    const section = main().getByRole('region', { name: 'Alerts by e-mail' })
    const change = async (text: string) => {
      await section.getByRole('button', { name: 'Change recipients' }).click()
      await dialog().getByLabel('Additional e-mail addresses').fill(text)
    }
    await change('oncall@example.com, nobody')
    await dialog().getByRole('button', { name: 'Save recipients', disabled: true }).waitFor()
    await dialog().getByLabel('Additional e-mail addresses').fill('oncall@example.com\nbilling@example.com')
    await dialog().getByRole('button', { name: 'Save recipients' }).click()
    await section.getByText('Also sent to oncall@example.com, billing@example.com').waitFor()
    await change('')
    await dialog().getByRole('button', { name: 'Save recipients' }).click()
    await section.getByText('No additional recipients.').waitFor()
  })

  test('an operator can open the pages of a tenant’s VM and of a user', async () => {
    const vm = await createVm(service, 'looked-at', 'a40.1x')
    await visit(page, '/fleet/vms')
    await main().getByRole('link', { name: 'looked-at' }).click()
    await main().getByRole('heading', { level: 1, name: 'looked-at' }).waitFor()
    const operations = main().getByRole('table', { name: 'Operations' })
    await operations.getByRole('row', { name: /Create VM succeeded/ }).waitFor()
    await main()
      .getByRole('table', { name: 'Events' })
      .getByRole('row', { name: /VM created/ })
      .waitFor()
    expect(await inBothThemes(page, 'fleet-vm')).toEqual([])
    expect(await onNarrowScreen(page, 'fleet-vm')).toEqual([])
    await main().getByRole('button', { name: 'Delete' }).click()
    await dialog().getByText('Show as CLI or curl').click()
    await dialog().getByText(`slipway admin vm delete ${vm.id}`, { exact: true }).waitFor()
    await page.keyboard.press('Escape')

    await visit(page, `/fleet/organizations/${service.organization_id}`)
    await main()
      .getByRole('table', { name: 'Projects' })
      .getByRole('row', { name: /^\S+ 1 1 [\d.]+ USD/ })
      .waitFor()

    await visit(page, '/fleet/users?q=owner@requests')
    await main().getByRole('link', { name: service.email, exact: true }).click()
    await main().getByRole('heading', { level: 1, name: service.email }).waitFor()
    await main()
      .getByRole('table', { name: 'Organizations' })
      .getByRole('row', { name: /Requests owner/ })
      .waitFor()
    await main()
      .getByRole('row', { name: /VM created.*looked-at/ })
      .first()
      .waitFor()
    expect(await inBothThemes(page, 'fleet-user')).toEqual([])
    expect(await onNarrowScreen(page, 'fleet-user')).toEqual([])
    await main().getByRole('button', { name: 'Create reset link' }).click()
    await dialog()
      .getByText(/\/reset#code=/)
      .waitFor()
    await closeSecret(dialog())
    await main().getByRole('button', { name: 'Suspend' }).click()
    await dialog().getByRole('button', { name: 'Suspend user' }).click()
    await main().getByText('suspended', { exact: true }).waitFor()
    await main().getByRole('button', { name: 'Restore' }).click()
    await main().getByText('active', { exact: true }).waitFor()
  })
})
