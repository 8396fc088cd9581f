import { createClient, logIn } from '@slipway/sdk'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { wide } from '../support/appearance.ts'
import {
  createVm,
  expectNoComplaints,
  inBothThemes,
  isBrowserMissing,
  modalOf,
  onNarrowScreen,
  openTab,
  signIn,
  useConsole,
  visit,
} from '../support/browser.ts'
import { addTenant } from '../support/service.ts'

describe.skipIf(isBrowserMissing)('a session of the console', () => {
  const scene = useConsole('Session', 'visitor')
  let page: Page
  beforeEach(() => {
    page = scene.page
  })

  const createDisk = (name: string) =>
    scene.service.tenant.diskCreate(
      { project_id: scene.service.project_id },
      { name, size: '10GiB', location: 'us-east1-a' },
    )
  const row = (name: string, on = page) =>
    on.getByRole('table', { name: 'Disks' }).getByRole('row', { name: new RegExp(name) })

  /** Creates a disk, signs in and opens the list of disks. */
  async function openDisks(name: string) {
    await createDisk(name)
    await signIn(page, scene.service)
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Disks' }).click()
    await row(name).waitFor()
  }

  /** Expires the user's tokens and waits until the service refuses them: the service caches callers for 0.5 s. */
  async function expire(...tables: ('access_tokens' | 'refresh_tokens')[]) {
    const { email, password, url } = scene.service
    let accessToken = ''
    const onTokens = (tokens: { accessToken: string }) => {
      accessToken = tokens.accessToken
    }
    await logIn({ baseUrl: url, email, password, onTokens })
    const statusOf = async () =>
      (await fetch(`${url}/v0.1/organizations`, { headers: { authorization: `Bearer ${accessToken}` } }))
        .status
    expect(await statusOf()).toBe(200)
    for (const table of tables)
      await scene.service.sql(
        `UPDATE ${table} SET expires_at = slipway_now() WHERE family_id IN (
           SELECT f.id FROM token_families f JOIN users u ON u.id = f.user_id WHERE u.email = $1)`,
        [email],
      )
    await expect.poll(statusOf).toBe(401)
  }

  /** Changes the password to the same one, which ends all other sessions. */
  async function endElsewhere() {
    const { email, password, url } = scene.service
    const elsewhere = await logIn({ baseUrl: url, email, password })
    const client = createClient({ baseUrl: url, token: elsewhere.token })
    await client.authPassword({ current_password: password, new_password: password })
  }

  async function signInAgain() {
    const question = page.getByRole('heading', { name: 'Your session has ended' })
    await question.waitFor()
    expect(await page.getByLabel('E-mail').inputValue()).toBe(scene.service.email)
    await page.getByLabel('Password').fill(scene.service.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await question.waitFor({ state: 'detached' })
  }

  test('sign-in rejects a wrong password and accepts the right one', async () => {
    const { service } = scene
    await page.goto(`${service.url}/`)
    await page.getByLabel('E-mail').fill(service.email)
    await page.getByLabel('Password').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('The e-mail or the password is wrong.').waitFor()
    await page.getByRole('alert').getByText('Request ID').waitFor()
    await signIn(page, service)
    await page.getByRole('heading', { level: 1, name: 'default' }).waitFor()
  })

  test('single sign-on creates an account, and can be linked to an existing one', async () => {
    const { service } = scene
    const { stand } = service
    stand.account = { sub: 'ada', email: 'ada@example.org', email_verified: true }
    const identity = page.getByRole('region', { name: 'Single sign-on' })
    const signInWithCompany = async () => {
      await page.goto(`${service.url}/`)
      await page.getByRole('link', { name: 'Sign in with company' }).click()
      await page.getByRole('button', { name: 'Account', exact: true }).waitFor()
      await visit(page, '/account')
      await identity.getByText('Linked', { exact: true }).waitFor()
    }
    await signInWithCompany()
    await page.getByRole('main').getByText('ada@example.org').first().waitFor()

    await page.context().clearCookies()
    stand.account = { sub: 'owner', email: 'owner@example.org', email_verified: true }
    await signIn(page, service)
    await visit(page, '/account')
    await identity.getByText('Not linked', { exact: true }).waitFor()
    await identity.getByRole('button', { name: 'Link company' }).click()
    await identity.getByText('Linked', { exact: true }).waitFor()
    await page.context().clearCookies()
    await signInWithCompany()
    await page.getByRole('main').getByText(service.email).first().waitFor()
    await identity.getByRole('button', { name: 'Unlink company' }).click()
    await identity.getByText('Not linked', { exact: true }).waitFor()
  })

  test('the first sign-in opens the project with running VMs, and a page lists all projects', async () => {
    const tenant = await addTenant(scene.service, 'Landing', 1)
    const busyId = tenant.spareProjects[0]!
    const vm = await createVm(tenant, 'worker', 'a40.1x', busyId)
    const { page: tab } = await openTab(await scene.browser.newContext({ viewport: wide }))
    const bell = tab.getByRole('button', { name: 'Alerts: 1' })
    const heading = (name: string) => tab.getByRole('heading', { level: 1, name })
    await signIn(tab, tenant)
    await heading('project-1').waitFor()
    await tab.getByRole('button', { name: 'Project project-1' }).click()
    await tab.getByRole('menuitem', { name: 'All projects' }).click()
    const list = tab.getByRole('table', { name: 'Projects of Landing' })
    await list.getByRole('row', { name: /^project-1 1 1 0\.90 USD\/h/ }).waitFor()
    await list.getByRole('row', { name: /^All projects 1 1 0\.90 USD\/h/ }).waitFor()
    expect(await inBothThemes(tab, 'projects')).toEqual([])
    expect(await onNarrowScreen(tab, 'projects')).toEqual([])
    await visit(tab, `/projects/${busyId}/settings/organization`)
    const own = tab.getByRole('table', { name: 'Projects', exact: true })
    await own.getByRole('row', { name: /^project-1 1 1 0\.90 USD\/h/ }).waitFor()
    // The bell is the same on all pages.
    await scene.service.sql(`UPDATE vms SET state = 'STATE_CRASHED' WHERE id = $1`, [vm.id])
    await tab.reload()
    await bell.waitFor()
    await visit(tab, '/account')
    await bell.waitFor()
    await visit(tab, `/projects/${tenant.project_id}`)
    await bell.waitFor()
    // From now on, the console starts with the project that was opened last.
    await tab.goto(`${tenant.url}/`)
    await heading('default').waitFor()
    await tab.context().close()
  })

  test('unknown pages, projects of other users and the fleet show the reason and keep the sidebar', async () => {
    const { service } = scene
    await signIn(page, service)
    const main = page.getByRole('main')
    const waitForSidebar = () => page.getByRole('navigation', { name: 'Main' }).waitFor()
    await page.goto(`${service.url}/nowhere/at/all`)
    await main.getByText('This page does not exist.').waitFor()
    await waitForSidebar()
    await visit(page, '/projects/01a1eb39-0000-7000-8000-000000000000/vms')
    await main.getByText(`or ${service.email} is not a member of its organization`).waitFor()
    await waitForSidebar()
    await visit(page, '/fleet')
    await main.getByText(`${service.email} is not an operator.`).waitFor()
    await waitForSidebar()
    expect(await inBothThemes(page, 'operators-only')).toEqual([])
    expect(await onNarrowScreen(page, 'operators-only')).toEqual([])
  })

  test('tokens are neither in storage nor in cookies that scripts can read', async () => {
    const { service } = scene
    await signIn(page, service)
    const stored = await page.evaluate(
      () => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie,
    )
    expect(stored).not.toMatch(/slp[ar]_/)
    const cookies = await page.context().cookies(`${service.url}/_console/session`)
    expect(cookies).toMatchObject([{ httpOnly: true, sameSite: 'Strict', path: '/_console/session' }])
  })

  test('two tabs show the same data, and signing out in one signs out both', async () => {
    await openDisks('seen-twice')
    const other = await openTab(page.context())
    await other.page.goto(page.url())
    await row('seen-twice', other.page).waitFor()
    await page.getByRole('button', { name: 'Actions for seen-twice' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await modalOf(page).getByLabel('Type seen-twice to confirm').fill('seen-twice')
    await modalOf(page).getByRole('button', { name: 'Delete disk' }).click()
    for (const on of [page, other.page]) await row('seen-twice', on).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Account' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await other.page.getByText('Your session has ended.').waitFor()
    expectNoComplaints(other)
    await other.page.close()
  })

  test('signing in after the session expired returns to the same page', async () => {
    await openDisks('before-expiry')
    await expire('access_tokens', 'refresh_tokens')
    // The new disk makes the page fetch data again.
    await createDisk('too-late-to-see')
    await signInAgain()
    await row('before-expiry').waitFor()
  })

  test('a dialog keeps its input when the session ends, and can be submitted after signing in', async () => {
    await openDisks('typed-before')
    await page.getByRole('button', { name: 'Create disk' }).click()
    const dialog = page.getByRole('dialog', { name: 'Create disk' })
    await dialog.getByLabel('Name').fill('typed-while-it-ended')
    await endElsewhere()
    await signInAgain()
    expect(await dialog.getByLabel('Name').inputValue()).toBe('typed-while-it-ended')
    await dialog.getByRole('button', { name: 'Create disk' }).click()
    await row('typed-while-it-ended').getByText('available').waitFor()
  })

  test('an expired access token is renewed without a sign-in', async () => {
    await openDisks('an-hour-before')
    await expire('access_tokens')
    await createDisk('an-hour-later')
    await row('an-hour-later').getByText('available').waitFor()
  })

  test('signing in after the session was ended elsewhere returns to the same page', async () => {
    await openDisks('before-the-end')
    await endElsewhere()
    await signInAgain()
    await row('before-the-end').waitFor()
  })

  test('the API reference sends test calls with a key, and never with the session', async () => {
    const { service } = scene
    await signIn(page, service)
    await page.goto(`${service.url}/docs#vmList`)
    const section = page.locator('#vmList')
    await section.getByRole('button', { name: 'Try it' }).click()
    await section.getByLabel('project_id').fill(service.project_id)
    await section.getByRole('button', { name: 'Send' }).click()
    await section.getByRole('status').getByText(/^401/).waitFor()
    await page.getByLabel('Key', { exact: true }).fill(service.access_key)
    await section.getByRole('button', { name: 'Send' }).click()
    await section.getByRole('status').getByText(/^200/).waitFor()
    await section.locator('.try pre').getByText('next_page_token').waitFor()
  })
})
