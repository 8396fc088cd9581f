import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { createVm, isBrowserMissing, pressChord, screenshot, useConsole, visit } from '../support/browser.ts'
import type { Service } from '../support/service.ts'

describe.skipIf(isBrowserMissing)('the activity of a project in the console', () => {
  const scene = useConsole('Activity')
  let service: Service
  let page: Page
  beforeEach(() => {
    ;({ service, page } = scene)
  })

  const main = () => page.getByRole('main')
  const rows = () => main().getByRole('table', { name: 'Events' }).getByRole('row')
  const open = (path: string) => visit(page, `/projects/${service.project_id}${path}`)

  test('an operation shows its steps below its row, and the URL keeps it open', async () => {
    await createVm(service, 'stepwise', 'a40.1x')
    await open('/vms')
    await pressChord(page, 'g', 'e')
    await main().getByRole('heading', { level: 1, name: 'Activity' }).waitFor()
    const row = rows().filter({ hasText: 'VM stepwise' })
    await row.getByRole('button', { name: 'VM created' }).click()
    await row.getByRole('listitem').filter({ hasText: 'Start the VM' }).waitFor()
    await page.waitForURL((url) => url.searchParams.has('open'))
    await screenshot(page, 'activity-steps')
    await page.reload()
    await row.getByRole('listitem').first().waitFor()
    await row.getByRole('button', { name: 'VM created' }).click()
    await row.getByRole('listitem').first().waitFor({ state: 'detached' })
  })

  test('search, state, type and dates limit the list, and links to the former pages keep their filters', async () => {
    const { project_id } = service
    const { id: vm_id } = await createVm(service, 'former', 'a40.1x')
    const { operation } = await service.asOwner.vmDelete({ project_id, vm_id })
    await service.asOwner.wait({ project_id }, operation)
    await open('/events?q=former')
    await page.waitForURL((url) => url.pathname.endsWith('/activity') && url.search === '?q=former')
    await rows().filter({ hasText: 'VM deleted' }).waitFor()
    await main().getByLabel('Search by resource name or ID').fill('no-such-name')
    await main().getByText('No events match the filters.').waitFor()
    await main().getByRole('button', { name: 'Clear filters' }).click()
    await main().getByLabel('Type').selectOption('All SSH key events')
    await main().getByText('No events match the filters.').waitFor()
    await main().getByLabel('Type').selectOption('All VM events')
    await rows().filter({ hasText: 'VM deleted' }).waitFor()
    await main().getByLabel('From date').fill('2001-01-01')
    await main().getByLabel('To date').fill('2001-01-02')
    await main().getByText('No events match the filters.').waitFor()
    await open('/vms')
    await open('/operations?state=failed')
    await page.waitForURL((url) => url.pathname.endsWith('/activity') && url.search === '?state=failed')
    expect(await main().getByLabel('State').inputValue()).toBe('failed')
    await main().getByText('No events match the filters.').waitFor()
    await main().getByLabel('State').selectOption('succeeded')
    await rows().filter({ hasText: 'VM deleted' }).waitFor()
  })

  test('the actor filter limits the list to the events of one person or key', async () => {
    const { project_id, email } = service
    await createVm(service, 'personal', 'a40.1x')
    await service.asOwner.accessKeyCreate({ project_id }, { name: 'idle-key', role: 'read' })
    await open('/activity')
    await main().getByLabel('Actor').selectOption('access key idle-key')
    await main().getByText('No events match the filters.').waitFor()
    await main().getByLabel('Actor').selectOption(email)
    await rows().filter({ hasText: 'VM personal' }).first().waitFor()
    await page.waitForURL((url) => url.searchParams.get('actor')?.startsWith('user:') ?? false)
  })
})
