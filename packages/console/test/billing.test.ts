import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  acceptInvitation,
  expectNoComplaints,
  isBrowserMissing,
  launch,
  openTab,
  screenshot,
  type Tab,
} from './browser.ts'
import { type Service, startService } from './service.ts'

const card = { number: '4242 4242 4242 4242', expiry: '12/40' }

describe.skipIf(isBrowserMissing)('paying for a project', () => {
  let service: Service
  let browser: Browser
  let tab: Tab
  let page: Page

  beforeAll(async () => {
    ;[service, browser] = await Promise.all([startService(), launch()])
    tab = await openTab(await browser.newContext())
    page = tab.page
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  const main = () => page.getByRole('main')

  test('a new owner makes the first project and meets the gate', async () => {
    const { id } = await service.operator.adminOrganizationCreate({ name: 'Harbour Labs' })
    const owner = { email: 'ada@example.com', organization_id: id, role: 'owner' as const }
    await acceptInvitation(page, service, owner, 'analytical-engine')
    await main().getByText('No project yet').waitFor()
    await main().getByRole('button', { name: 'Create project' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('research')
    await page.getByRole('dialog').getByRole('button', { name: 'Create project' }).click()
    await main().getByText('Add a payment method to use this project').waitFor()
    await screenshot(page, 'gate-light')
  })

  test('a test card in the billing dashboard opens the gate without a reload', async () => {
    const opened = page.context().waitForEvent('page')
    await main().getByRole('button', { name: 'Open billing' }).click()
    const billing = await opened
    await billing.getByLabel('Test card number').fill(card.number)
    await billing.getByLabel('Expiry').fill(card.expiry)
    await billing.getByRole('button', { name: 'Add card' }).click()
    await billing.getByText('4242').first().waitFor()
    await screenshot(billing, 'billing-dashboard-light')
    await main().getByText('Nothing runs here yet.').waitFor()
    await billing.close()
  })

  test('a budget is set and shows what is spent of it', async () => {
    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByRole('link', { name: 'Billing and budget' }).click()
    await page.getByLabel('Monthly limit, USD').fill('0')
    await page.getByLabel('Refuse new VMs when the budget is spent').check()
    await page.getByRole('button', { name: 'Save budget' }).click()
    await page.getByText('The budget is 0.00 USD a month').waitFor()
    expect(await page.getByRole('meter', { name: 'Spent this month' }).count()).toBe(1)
  })

  test('met no script error and no breach of the Content-Security-Policy', () => expectNoComplaints(tab))
})
