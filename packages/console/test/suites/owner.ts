import { createClient, logIn } from '@slipway/sdk'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { startReceiver } from '@slipway/testing/webhook-receiver.ts'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  acceptInvitation,
  closeSecret,
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

const card = { number: '4242 4242 4242 4242', expiry: '12/40' }
const password = 'analytical-engine'

describe.skipIf(isBrowserMissing)('an owner in the console', () => {
  const scene = useConsole('Owner', 'visitor')
  let page: Page
  let owner: { email: string; organization_id: string }
  let lastOwner = 0
  // Each test has its own user and organization, without a payment method.
  beforeEach(async () => {
    const { service } = scene
    page = scene.page
    lastOwner += 1
    const { id } = await service.operator.adminOrganizationCreate({ name: `Harbour Labs ${lastOwner}` })
    owner = { email: `ada-${lastOwner}@owner.example`, organization_id: id }
    await acceptInvitation(page, service, { ...owner, role: 'owner' }, password)
  })

  const main = () => page.getByRole('main')
  const dialog = () => modalOf(page)
  const goTo = (name: string) =>
    page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name }).click()

  /** Creates a project through the API and adds a card in the billing dashboard. */
  async function openNewProject() {
    const { email, organization_id } = owner
    const { token } = await logIn({ baseUrl: scene.service.url, email, password })
    const client = createClient({ baseUrl: scene.service.url, token })
    const { id } = await client.projectCreate({ name: 'research', organization_id })
    await page.goto(`${scene.service.url}/projects/${id}`)
    await main().getByRole('heading', { level: 1, name: 'Getting started' }).waitFor()
    await inBilling(main().getByRole('button', { name: 'Open billing' }), addCard)
    await main().getByText('No VMs yet.').waitFor()
    return { client, project_id: id }
  }

  /** Fills in the form for a new VM and submits it. */
  async function requestVm(name: string) {
    await main().getByRole('link', { name: 'Create VM' }).first().click()
    await page.getByLabel('Name', { exact: true }).fill(name)
    await page.getByLabel('SSH public key').fill(sshKey)
    await summary().getByRole('button', { name: 'Create VM' }).click()
  }
  const summary = () => page.getByRole('complementary', { name: 'Summary' })

  /** Clicks the button that opens the billing dashboard, and runs `work` in the new tab. */
  async function inBilling(button: ReturnType<Page['getByRole']>, work: (billing: Page) => Promise<void>) {
    const [billing] = await Promise.all([page.context().waitForEvent('page'), button.click()])
    await work(billing)
    await billing.close()
  }
  async function addCard(billing: Page) {
    await billing.getByLabel('Test card number').fill(card.number)
    await billing.getByLabel('Expiry').fill(card.expiry)
    await billing.getByRole('button', { name: 'Add card' }).click()
    await billing.getByText('4242').first().waitFor()
  }

  async function removeCard() {
    await goTo('Settings')
    await page.getByRole('link', { name: 'Billing and budget' }).click()
    await inBilling(main().getByRole('button', { name: 'Open billing' }), async (billing) => {
      await billing.getByRole('button', { name: 'Remove' }).click()
      await billing.getByText('Payment method removed.').waitFor()
    })
  }

  test('a new project asks for a payment method and opens without a reload after a card is added', async () => {
    await main().getByText('No projects yet').waitFor()
    await main().getByRole('button', { name: 'Create project' }).click()
    await dialog().getByLabel('Name').fill('research')
    // The page hides errors of single requests until it knows that the service refuses the whole project.
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    await page.route(/\/quotas$/, (route) => released.then(() => route.continue()))
    const refused = page.waitForResponse((response) => /\/budget$/.test(response.url()))
    await dialog().getByRole('button', { name: 'Create project' }).click()
    expect((await refused).status()).toBe(402)
    await dialog().waitFor({ state: 'detached' })
    await main().getByRole('status', { name: 'Loading' }).first().waitFor()
    expect(await main().getByRole('button', { name: 'Open billing' }).count()).toBe(0)
    release()
    await main().getByText('has no payment method yet').waitFor()
    await main().getByRole('listitem').getByText('Add a payment method').waitFor()
    await page.unroute(/\/quotas$/)
    expect(
      await main()
        .getByText(/payment method/)
        .count(),
    ).toBe(2)
    // There is no live state without an accessible project.
    await page.getByRole('banner').getByRole('status').waitFor({ state: 'detached' })
    await screenshot(page, 'gate-light')
    await inBilling(main().getByRole('button', { name: 'Open billing' }), async (billing) => {
      await addCard(billing)
      await screenshot(billing, 'billing-dashboard-light')
      await main().getByText('No VMs yet.').waitFor()
    })
  })

  test('the form for a VM asks for a payment method, and works after a card is added', async () => {
    await openNewProject()
    await removeCard()
    // Requests that cost nothing still work.
    await goTo('VMs')
    await main().getByText('No VMs yet').waitFor()
    await main().getByRole('link', { name: 'Add a payment method' }).first().waitFor()
    await page.keyboard.press('c')
    // The page says what is missing before the form is filled in.
    const alerts = main().getByRole('region', { name: 'Alerts' })
    await alerts.getByText('was removed').waitFor()
    await summary().getByRole('button', { name: 'Create VM', disabled: true }).waitFor()
    await summary().getByText('Add a payment method first').waitFor()
    await screenshot(page, 'payment-needed-light')
    await page.getByLabel('Name', { exact: true }).fill('first')
    await page.getByLabel('SSH public key').fill(sshKey)
    await inBilling(alerts.getByRole('button', { name: 'Open billing' }), addCard)
    await alerts.waitFor({ state: 'detached' })
    await summary().getByRole('button', { name: 'Create VM' }).click()
    await page.getByRole('heading', { level: 1, name: 'first' }).waitFor()
    await result(page, 'first is running').waitFor()
  })

  test('a toast about a missing payment method has a button that opens the billing dashboard', async () => {
    await openNewProject()
    await requestVm('first')
    await result(page, 'first is running').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await dialog().getByRole('button', { name: 'Stop VM' }).click()
    await result(page, 'Stopped first').waitFor()
    const vmUrl = page.url()
    await removeCard()
    await visit(page, new URL(vmUrl).pathname)
    await page.getByRole('button', { name: 'Start' }).click()
    await result(page, 'Could not start first').waitFor()
    // Screen readers get failures from a separate alert; the toast itself is hidden until it has the focus.
    const toast = page.getByRole('region', { name: /notification/i })
    await inBilling(toast.getByRole('button', { name: 'Open billing', includeHidden: true }), addCard)
    await page.getByRole('button', { name: 'Start' }).click()
    await result(page, 'Started first').waitFor()
  })

  test('a budget is set, and the page shows how much of it is spent', async () => {
    await openNewProject()
    await goTo('Settings')
    await page.getByRole('link', { name: 'Billing and budget' }).click()
    await page.getByLabel('Monthly limit (USD)').fill('0')
    await page.getByLabel('Block new VMs, VM starts and new disks when the budget is spent').check()
    await page.getByRole('button', { name: 'Save budget' }).click()
    await page.getByText('Budget set to 0.00 USD per month').waitFor()
    await page.getByRole('meter', { name: 'Spent this month' }).waitFor()
  })

  test('a webhook receives events, and a failed delivery is replayed', async () => {
    const receiver = await startReceiver()
    let isBroken = true
    receiver.answer = () => (isBroken ? 500 : 204)
    receiver.responseBody = 'out of order <now>'
    const { client, project_id } = await openNewProject()
    await goTo('Settings')
    await page.getByRole('link', { name: 'Webhooks' }).click()
    await main().getByText('slipway webhook create').waitFor()
    await main().getByRole('button', { name: 'Create webhook' }).first().click()
    await dialog().getByLabel('URL').fill(receiver.url)
    await dialog().getByRole('button', { name: 'Create webhook' }).click()
    await dialog()
      .getByText(/^whsec_/)
      .waitFor()
    await closeSecret(dialog())
    await main().getByRole('link', { name: receiver.url }).click()
    await page.getByRole('heading', { level: 1, name: new URL(receiver.url).host }).waitFor()
    await main().getByRole('button', { name: 'Edit' }).click()
    await dialog().getByText('Show as CLI or curl').click()
    await dialog()
      .getByText(/slipway webhook change \S+ --url/)
      .waitFor()
    await dialog().getByLabel('URL').fill(`${receiver.url}?from=console`)
    await dialog().getByRole('button', { name: 'Save changes' }).click()
    await main().getByText(`${receiver.url}?from=console`, { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await main().getByText(receiver.url, { exact: true }).waitFor()
    await main().getByRole('button', { name: 'Send test' }).click()
    const delivery = main().getByRole('row', { name: /Test event/ })
    await delivery.getByText('responded with 500').waitFor()
    await delivery.getByText('retrying').waitFor()
    await delivery.getByText(/^(in \d+ \w+|now)$/).waitFor()
    await delivery.getByText('this webhook').waitFor()
    const detail = delivery.getByRole('button', { name: 'Test event' })
    await detail.click()
    await delivery.getByText('"type": "webhook.test"').first().waitFor()
    await delivery.getByRole('tab', { name: 'Response 500' }).click()
    await delivery.getByText('out of order <now>').waitFor()
    await delivery.getByRole('button', { name: 'Copy the response' }).waitFor()
    expect(await inBothThemes(page, 'webhook-delivery')).toEqual([])
    await detail.click()
    expect(await delivery.getByRole('time').last().textContent()).toMatch(/:\d\d:\d\d/)
    expect(await delivery.getByRole('button', { name: 'Replay' }).count()).toBe(0)
    // An active webhook whose deliveries fail is shown as failing.
    await main()
      .getByText(
        /^since .+: .+\. Next attempt (in \d+ \w+|now)\. Will be paused on .+ unless a delivery succeeds; waiting deliveries are kept\.$/,
      )
      .waitFor()
    await page
      .getByRole('navigation', { name: 'Breadcrumbs' })
      .getByRole('link', { name: 'Webhooks' })
      .click()
    const listed = main().getByRole('row', { name: /failing since / })
    await listed.getByRole('link', { name: receiver.url }).click()
    // Attempts continue for a day. End them now.
    await scene.service.sql(
      `UPDATE webhook_deliveries SET state = 'failed', completed_at = slipway_now(), next_attempt_at = NULL
       WHERE state = 'pending' AND event_type = 'webhook.test'`,
    )
    await delivery.getByText('failed').waitFor()
    isBroken = false
    await delivery.getByRole('button', { name: 'Replay' }).click()
    await result(page, 'Delivery queued again').waitFor()
    await main().getByRole('row', { name: /test/ }).filter({ hasText: 'delivered' }).first().waitFor()
    await main().getByText('active', { exact: true }).waitFor()
    expect(receiver.received.length).toBeGreaterThan(1)
    await client.diskCreate({ project_id }, { name: 'datasets', size: '10GiB', location: 'us-east1-a' })
    for (const event of ['Disk available', 'Operation succeeded'])
      await main()
        .getByRole('row', { name: new RegExp(`^${event} disk datasets delivered`) })
        .waitFor()
    await main().getByRole('button', { name: 'Pause' }).click()
    await main().getByText('paused', { exact: true }).waitFor()
    const trail = page.getByRole('navigation', { name: 'Breadcrumbs' })
    await trail.getByRole('link', { name: 'Webhooks' }).click()
    await main().getByRole('link', { name: receiver.url }).waitFor()
  })

  test('an invited member chooses a password and changes it later', async () => {
    await openNewProject()
    await goTo('Settings')
    await page.getByRole('link', { name: 'Members' }).click()
    await main().getByRole('button', { name: 'Invite member' }).click()
    await dialog().getByLabel('E-mail').fill('grace@owner.example')
    await dialog().getByRole('button', { name: 'Invite' }).click()
    const inviteUrl =
      (await dialog()
        .getByText(/\/accept#code=/)
        .textContent()) ?? ''
    await closeSecret(dialog())
    await main().getByRole('row', { name: /grace/ }).getByText('invited').waitFor()

    const guest = await openTab(await scene.browser.newContext())
    await openInvitation(guest.page, inviteUrl, 'compiled-first')
    await guest.page.getByRole('heading', { level: 1, name: 'research' }).waitFor()
    await visit(guest.page, '/account')
    const change = async (current: string) => {
      await guest.page.getByLabel('Current password').fill(current)
      await guest.page.getByLabel('New password').fill('nanoseconds')
      await guest.page.getByRole('button', { name: 'Change password' }).click()
    }
    await change('not-this-one')
    await guest.page.getByRole('alert').waitFor()
    await change('compiled-first')
    await result(guest.page, /password/i).waitFor()
    await guest.page.context().clearCookies()
    await signIn(guest.page, scene.service, { email: 'grace@owner.example', password: 'nanoseconds' })
    expectNoComplaints(guest)
    await guest.page.goto(inviteUrl)
    await guest.page.getByRole('heading', { name: 'This invitation no longer works' }).waitFor()
    await guest.page.context().close()
  })
})
