import type { Vm } from '@slipway/sdk'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { setTheme, wide } from './appearance.ts'
import { launch, visit } from './browser-program.ts'
import { addTenant, addUser, removeVms, type Service, startService } from './service.ts'

export { inBothThemes, onNarrowScreen, openOnNarrowScreen, screenshot } from './appearance.ts'
export { visit, waitUntilLoaded } from './browser-program.ts'

/** If Chromium is missing, `npm test` prints a note, or fails with CI=true. */
export const isBrowserMissing = (process.env.SLIPWAY_MISSING ?? '').split(',').includes('chromium')

export interface Tab {
  page: Page
  /** Script errors and violations of the Content-Security-Policy. */
  complaints: string[]
}

export async function openTab(context: BrowserContext): Promise<Tab> {
  const page = await context.newPage()
  // A long timeout, because many pages share the machine; only failing tests reach it.
  page.setDefaultTimeout(30_000)
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    if (/Content.Security.Policy|Warning:|Uncaught/i.test(message.text())) complaints.push(message.text())
  })
  return { page, complaints }
}

export async function signIn(
  page: Page,
  service: Service,
  who: { email: string; password: string } = service,
) {
  await page.goto(`${service.url}/`)
  await page.getByLabel('E-mail').fill(who.email)
  await page.getByLabel('Password').fill(who.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await waitForFirstPage(page)
}

/** Waits for the first page after a sign-in. The header appears before a project is chosen. */
async function waitForFirstPage(page: Page) {
  await page.getByRole('button', { name: 'Account', exact: true }).waitFor()
  await page.getByRole('heading', { level: 1 }).waitFor()
}

export const signInAsOperator = (page: Page, service: Service) =>
  signIn(page, service, { email: service.operator_email, password: service.operator_password })

/** Invites a user through the operator API and accepts the invitation on the page. */
export async function acceptInvitation(
  page: Page,
  service: Service,
  user: { email: string; is_operator?: boolean; organization_id?: string; role?: 'viewer' | 'owner' },
  password: string,
) {
  const { invite_url } = await service.operator.adminUserCreate(user)
  await openInvitation(page, invite_url, password)
}

export async function openInvitation(page: Page, inviteUrl: string, password: string) {
  await page.goto(inviteUrl)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Set password and sign in' }).click()
  await waitForFirstPage(page)
}

/** Presses two keys without waiting for the page in between. */
export const pressChord = (page: Page, first: string, second: string) =>
  Promise.all([page.keyboard.press(first), page.keyboard.press(second)])

/** The open dialog. Toasts also have the role `dialog`. */
export const modalOf = (page: Page) => page.locator('[role="dialog"][data-modal]')

/** Copies the secret in a dialog, because a dialog whose secret was not copied asks before it closes. */
export async function closeSecret(dialog: Locator): Promise<void> {
  await dialog.getByRole('button', { name: 'Copy', exact: true }).click()
  await dialog.getByText('Copied').waitFor()
  await dialog.getByRole('button', { name: 'Done' }).click()
}

/** Finds the newest toast with the result of an action. An older one with the same words may still be visible. */
export const result = (page: Page, words: string | RegExp) =>
  page
    .getByRole('region', { name: /notification/i })
    .getByText(words)
    .first()

export const expectNoComplaints = (tab: Tab) => expect(tab.complaints).toEqual([])

let shared: ReturnType<typeof startShared> | undefined

async function startShared() {
  const [service, browser] = await Promise.all([startService(), launch()])
  return { service, browser }
}

/** Closes the service and the browser that the suites share. */
export async function closeShared(): Promise<void> {
  const started = await shared
  await started?.browser.close()
  await started?.service.close()
}

const spareProjectCount = 22

/** The user of a suite's tab. A visitor is not signed in. */
type Person = 'owner' | 'operator' | 'owner and operator' | 'visitor'

export interface Scene {
  service: Service
  browser: Browser
  tab: Tab
  page: Page
}

/**
 * Gives a suite a tenant of the shared service and a tab of the shared browser. The tests of the suite reuse the tab,
 * because loading the console for each test would take most of the time.
 */
export function useConsole(organization: string, person: Person = 'owner'): Scene {
  const scene = {} as Scene
  let signInAs: { email: string; password: string } | undefined
  const begin = async () => {
    await scene.page?.context().close()
    scene.tab = await openTab(await scene.browser.newContext({ viewport: wide, reducedMotion: 'reduce' }))
    scene.page = scene.tab.page
    if (signInAs) await signIn(scene.page, scene.service, signInAs)
  }
  beforeAll(async () => {
    shared ??= startShared()
    const { service, browser } = await shared
    scene.browser = browser
    scene.service = await addTenant(service, organization, person === 'owner' ? spareProjectCount : 0)
    signInAs = await credentialsOf(scene.service, person)
    await begin()
  })
  afterEach(async ({ task }) => {
    const { tab, page } = scene
    // The state after a failed test is unknown.
    if (task.result?.state === 'fail') return begin()
    expect(tab.complaints.splice(0)).toEqual([])
    await (signInAs ? clear(page) : forget(page))
  })
  afterAll(async () => {
    await scene.page?.context().close()
    if (scene.service) await removeVms(scene.service)
  })
  return scene
}

async function credentialsOf(service: Service, person: Person) {
  const { email, password, organization_id } = service
  switch (person) {
    case 'owner':
      return { email, password }
    case 'operator':
      return { email: service.operator_email, password: service.operator_password }
    case 'owner and operator':
      return addUser(service, {
        email: `operator-${email}`,
        is_operator: true,
        organization_id,
        role: 'owner',
      })
    case 'visitor':
      return undefined
  }
}

/** Resets the tab for the next test, with the console loaded and signed in. */
async function clear(page: Page): Promise<void> {
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await page.setViewportSize(wide)
  await page.mouse.move(0, 0)
  await setTheme(page, 'light')
  await visit(page, '/account')
  const dismiss = page.getByRole('button', { name: 'Dismiss', includeHidden: true })
  await dismiss.evaluateAll((buttons) => {
    for (const button of buttons) (button as HTMLElement).click()
  })
  await dismiss.first().waitFor({ state: 'detached' })
}

/** Resets the tab for the next test, without a session. */
async function forget(page: Page): Promise<void> {
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await page.goto('about:blank')
  await page.setViewportSize(wide)
  await page.context().clearCookies()
}

/** Takes a project that no other test uses. */
export function takeProject({ spareProjects }: Service): string {
  const id = spareProjects.pop()
  if (!id) throw new Error(`${spareProjectCount} projects are not enough. Increase spareProjectCount.`)
  return id
}

export const vmRequest = (name: string, type: string) => ({
  name,
  type,
  location: 'us-east1-a',
  image: 'ubuntu24.04-nvidia',
  ssh_public_key: sshKey,
})

/** Creates a VM and waits until it runs. */
export async function createVm(
  service: Service,
  name: string,
  type: string,
  project_id = service.project_id,
): Promise<Vm> {
  const { operation } = await service.asOwner.vmCreate({ project_id }, vmRequest(name, type))
  return (await service.asOwner.wait<Vm>({ project_id }, operation)).result
}
