import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import axe from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Service } from './service.ts'

const screenshots = join(import.meta.dirname, '../../../artifacts')
mkdirSync(screenshots, { recursive: true })

/** Where Chromium is missing, npm test has said so; with CI=true it has already refused. */
export const isBrowserMissing = (process.env.SLIPWAY_MISSING ?? '').split(',').includes('chromium')

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.SLIPWAY_CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  })
}

export interface Tab {
  page: Page
  /** What the page complained about: script errors and refusals by the Content-Security-Policy. */
  complaints: string[]
}

export async function openTab(context: BrowserContext): Promise<Tab> {
  const page = await context.newPage()
  page.setDefaultTimeout(15_000)
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
  who: { email: string; password: string } = service.credentials,
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
  await page.goto(invite_url)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Set password and sign in' }).click()
  await page.getByRole('navigation', { name: 'Main' }).waitFor()
}

/** What axe finds serious or critical, in words. Themes differ in colours alone. */
export async function seriousFindings(page: Page, what: 'everything' | 'colours'): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source)
  const violations = await page.evaluate(async (isWhole) => {
    const { axe } = window as unknown as { axe: typeof import('axe-core') }
    const { violations } = await axe.run(document, {
      resultTypes: ['violations'],
      ...(!isWhole && { runOnly: ['color-contrast'] }),
    })
    return violations.map(({ id, impact, nodes }) => ({
      id,
      impact,
      nodes: nodes.slice(0, 3).map(({ target, failureSummary }) => `${target} ${failureSummary}`),
    }))
  }, what === 'everything')
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.join(' | ')}`)
}

export async function screenshot(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: join(screenshots, `${name}.png`), animations: 'disabled' })
}

export const expectNoComplaints = (tab: Tab) => expect(tab.complaints).toEqual([])
