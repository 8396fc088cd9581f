import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Vm } from '@slipway/sdk'
import { root } from '@slipway/testing/root.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import axe from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { launch } from './browser-program.ts'
import { type MoreConfig, type Service, startService } from './service.ts'

export { settled, visit } from './browser-program.ts'

/** No test reads the screenshots, and to take them is a fifth of the browser's work. */
const takesScreenshots = Boolean(process.env.SLIPWAY_SCREENSHOTS)
const screenshots = join(root, 'artifacts')
const wide = { width: 1280, height: 860 }

/** Where Chromium is missing, npm test has said so; with CI=true it has already refused. */
export const isBrowserMissing = (process.env.SLIPWAY_MISSING ?? '').split(',').includes('chromium')

export interface Tab {
  page: Page
  /** The page complained about these: script errors and refusals by the Content-Security-Policy. */
  complaints: string[]
}

export async function openTab(context: BrowserContext): Promise<Tab> {
  const page = await context.newPage()
  // The bound is for failures alone: a page that is looked at among many others takes its time.
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
  await page.getByRole('navigation', { name: 'Main' }).waitFor()
}

/** Invites someone by the operator API and lets them choose a password on the page that the link opens. */
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
  await page.getByRole('navigation', { name: 'Main' }).waitFor()
}

/** Returns everything that axe finds, by all of its rules but those of AAA and those that it has given up, in words. */
async function findingsOf(page: Page, part: string, isOnlyColour: boolean): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source)
  const violations = await page.evaluate(
    async ({ part, isOnlyColour }) => {
      const { axe } = window as unknown as { axe: typeof import('axe-core') }
      const left = /^(wcag2aaa|deprecated)$/
      const rules = axe
        .getRules(isOnlyColour ? ['cat.color'] : [])
        .filter(({ tags }) => !tags.some((tag) => left.test(tag)))
      const { violations } = await axe.run(part, {
        runOnly: { type: 'rule', values: rules.map(({ ruleId }) => ruleId) },
        resultTypes: ['violations'],
        preload: false,
        // To find a selector for each element takes as long as to look at it.
        selectors: false,
      })
      return violations.map(({ id, nodes }) => ({
        id,
        nodes: nodes.slice(0, 3).map(({ html, failureSummary }) => `${html} ${failureSummary}`),
      }))
    },
    { part, isOnlyColour },
  )
  return violations.map(({ id, nodes }) => `${id}: ${nodes.join(' | ')}`)
}

/** Takes a screenshot if SLIPWAY_SCREENSHOTS is set. */
export async function screenshot(page: Page, name: string): Promise<void> {
  if (takesScreenshots) await drawn(page)
  await capture(page, name)
}

/** Takes the page as it is drawn, which is half the work of Playwright's own screenshots. */
async function capture(page: Page, name: string): Promise<void> {
  if (!takesScreenshots) return
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'png', optimizeForSpeed: true })
  await session.detach()
  mkdirSync(screenshots, { recursive: true })
  writeFileSync(join(screenshots, `${name}.png`), Buffer.from(data, 'base64'))
}

/** Returns what axe says of the page, or of a part of it, in each theme. */
export async function inBothThemes(page: Page, name: string, part = 'html'): Promise<string[]> {
  const findings: string[] = []
  for (const theme of ['light', 'dark']) {
    await setTheme(page, theme)
    await drawn(page)
    // Between the themes nothing but the colours differs.
    const found = await findingsOf(page, part, theme === 'dark')
    findings.push(...found.map((finding) => `${name} ${theme}: ${finding}`))
    await capture(page, `${name}-${theme}`)
  }
  await setTheme(page, 'light')
  return findings
}

/**
 * Waits until the page holds still: what a new size or theme changes by observers and listeners comes some frames later,
 * and the end of a transition later still.
 */
const drawn = (page: Page) =>
  page.evaluate(async () => {
    const isMoving = () =>
      document.getAnimations().some(({ effect }) => effect?.getComputedTiming().endTime !== Infinity)
    let before = ''
    for (let stillFrames = 0; stillFrames < 3; ) {
      await new Promise(requestAnimationFrame)
      const now = document.body.outerHTML
      stillFrames = now === before && !isMoving() ? stillFrames + 1 : 0
      before = now
    }
  })

const setTheme = (page: Page, theme: string) =>
  page.evaluate((wanted) => {
    document.documentElement.dataset.theme = wanted
  }, theme)

/** Returns what is too wide for a narrow screen. */
export async function onNarrowScreen(page: Page, name: string): Promise<string[]> {
  await page.setViewportSize({ width: 390, height: 1600 })
  const overflowOf = () => {
    const content = document.querySelector('#content') ?? document.documentElement
    return content.scrollWidth - content.clientWidth
  }
  // Some parts learn of the new width only after the page has it.
  await page.waitForFunction(`(${overflowOf})() <= 0`, undefined, { timeout: 5_000 }).catch(() => {})
  const overflow = await page.evaluate(overflowOf)
  await screenshot(page, `${name}-narrow`)
  await page.setViewportSize(wide)
  return overflow > 0 ? [`${name} narrow: ${overflow} px too wide`] : []
}

/** Returns what of an open dialog or menu cannot be seen on a phone. */
export async function openOnNarrowScreen(page: Page, name: string, part: string): Promise<string[]> {
  const width = 390
  await page.setViewportSize({ width, height: 844 })
  await drawn(page)
  const popup = page.locator(part).first()
  const box = (await popup.boundingBox())!
  const overflow = await popup.evaluate((element) => element.scrollWidth - element.clientWidth)
  await capture(page, `${name}-narrow`)
  await page.setViewportSize(wide)
  const isOutside = box.x < 0 || box.x + box.width > width
  return isOutside || overflow > 0 ? [`${name} narrow: does not fit`] : []
}

/** Presses two keys as one who knows the shortcut does, however long the page takes for the first. */
export const pressChord = (page: Page, first: string, second: string) =>
  Promise.all([page.keyboard.press(first), page.keyboard.press(second)])

/** The dialog that is open. Toasts have that role as well. */
export const modalOf = (page: Page) => page.locator('[role="dialog"][data-modal]')

/** Finds the toast that says how something ended. */
export const result = (page: Page, words: string | RegExp) =>
  page.getByRole('region', { name: /notification/i }).getByText(words)

export const expectNoComplaints = (tab: Tab) => expect(tab.complaints).toEqual([])

/** Starts a service, a browser and a tab for a whole file of tests. */
export function useConsole(more: () => Promise<MoreConfig> = async () => ({})): Scene {
  const scene = {} as Scene
  beforeAll(async () => {
    const [service, browser] = await Promise.all([startService(await more()), launch()])
    const tab = await openTab(await browser.newContext({ viewport: wide, reducedMotion: 'reduce' }))
    Object.assign(scene, { service, browser, tab, page: tab.page })
  })
  afterAll(async () => {
    await scene.browser?.close()
    await scene.service?.close()
  })
  return scene
}

/** Signs in once for a file of tests, and opens a tab for each of them; none may leave a complaint behind. */
export function useSignedInTabs(scene: Scene): void {
  beforeAll(() => signIn(scene.page, scene.service))
  beforeEach(async () => {
    scene.tab = await openTab(scene.page.context())
    scene.page = scene.tab.page
  })
  afterEach(async () => {
    expectNoComplaints(scene.tab)
    await scene.page.close()
  })
}

export interface Scene {
  service: Service
  browser: Browser
  tab: Tab
  page: Page
}

let lastProject = 0
/** Creates a project of the demo's organization, for a test that needs one to itself. */
export async function createProject({ asOwner, organization_id }: Service): Promise<string> {
  lastProject += 1
  return (await asOwner.projectCreate({ name: `project-${lastProject}`, organization_id })).id
}

export const vmRequest = (name: string, type: string) => ({
  name,
  type,
  location: 'us-east1-a',
  image: 'ubuntu24.04-nvidia',
  ssh_public_key: sshKey,
})

/** Creates a VM in the demo project or another one, and waits until it runs. */
export async function createVm(
  service: Service,
  name: string,
  type: string,
  project_id = service.project_id,
): Promise<Vm> {
  const { operation } = await service.asOwner.vmCreate({ project_id }, vmRequest(name, type))
  return (await service.asOwner.wait<Vm>({ project_id }, operation)).result
}
