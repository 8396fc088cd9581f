import { createClient, logIn } from '@slipway/sdk'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { URI } from 'otpauth'
import type { Locator, Page } from 'playwright-core'
import decodeQr from 'qr/decode.js'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  acceptInvitation,
  closeSecret,
  createVm,
  isBrowserMissing,
  modalOf,
  openTab,
  pressChord,
  result,
  useConsole,
  visit,
} from '../support/browser.ts'

const password = 'analytical-engine'

describe.skipIf(isBrowserMissing)('a new user of the console', () => {
  const scene = useConsole('Newcomer', 'visitor')
  let page: Page
  beforeEach(() => {
    page = scene.page
  })

  const main = () => page.getByRole('main')
  const dialog = () => modalOf(page)
  const newOrganization = async (name: string) => {
    const { id } = await scene.service.operator.adminOrganizationCreate({ name })
    return id
  }

  test('the getting-started list leads to a VM with a budget and disappears when it is complete', async () => {
    const { service } = scene
    const organization_id = await newOrganization('Harbour Labs')
    const email = 'ada@harbour.example'
    await acceptInvitation(page, service, { email, organization_id, role: 'owner' }, password)
    const { token } = await logIn({ baseUrl: service.url, email, password })
    const client = createClient({ baseUrl: service.url, token })
    const { id: project_id } = await client.projectCreate({ name: 'research', organization_id })
    await page.goto(`${service.url}/projects/${project_id}`)
    const steps = page.getByRole('region', { name: 'Getting started' })
    // An SSH key can be added without a payment method.
    await steps.getByRole('listitem').nth(1).getByRole('button', { name: 'Add SSH key' }).click()
    await dialog().getByLabel('Public key').fill(sshKey)
    await dialog().getByRole('button', { name: 'Add key' }).click()
    await steps.getByRole('listitem').nth(1).getByLabel('done').waitFor()
    await visit(page, `/projects/${project_id}/settings/ssh-keys`)
    await main()
      .getByRole('row', { name: /ada@laptop/ })
      .waitFor()
    await visit(page, `/projects/${project_id}`)
    const [billing] = await Promise.all([
      page.context().waitForEvent('page'),
      steps.getByRole('button', { name: 'Open billing' }).click(),
    ])
    await billing.getByLabel('Test card number').fill('4242 4242 4242 4242')
    await billing.getByLabel('Expiry').fill('12/40')
    await billing.getByRole('button', { name: 'Add card' }).click()
    await billing.getByText('4242').first().waitFor()
    await billing.close()
    await steps.getByRole('link', { name: 'Create VM' }).click()
    await page.getByRole('checkbox', { name: /ada@laptop/ }).waitFor()
    await page
      .getByRole('complementary', { name: 'Summary' })
      .getByRole('button', { name: 'Create VM' })
      .click()
    await page.getByRole('heading', { level: 1, name: /-/ }).waitFor()
    await visit(page, `/projects/${project_id}`)
    await steps.getByRole('link', { name: 'Set a budget' }).waitFor()
    await client.budgetSet({ project_id }, { monthly_usd: 100, hard_stop: false })
    await page.reload()
    await page.getByRole('region', { name: 'Quotas' }).getByRole('meter').first().waitFor()
    await steps.waitFor({ state: 'detached' })
  })

  test('an invitation shows the organization, the role and the address', async () => {
    const { service } = scene
    const organization_id = await newOrganization('Harbour Observatory')
    const { invite_url } = await service.operator.adminUserCreate({
      email: 'grace@newcomer.example',
      organization_id,
      role: 'viewer',
    })
    await page.goto(invite_url)
    await page.getByText('viewer of Harbour Observatory').waitFor()
    await page.getByText('The invitation is for grace@newcomer.example.').waitFor()
    expect(await page.getByLabel('E-mail').inputValue()).toBe('grace@newcomer.example')
    // A second invitation to the same address replaces the first, whose page says what to do.
    await service.operator.adminUserCreate({
      email: 'grace@newcomer.example',
      organization_id,
      role: 'viewer',
    })
    await page.reload()
    await page.getByRole('heading', { name: 'This invitation no longer works' }).waitFor()
    expect(await page.getByLabel('Password').count()).toBe(0)
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.getByLabel('Password').waitFor()
  })

  test('two-factor authentication can be turned on, rejects a wrong code, and can be turned off', async () => {
    const { service } = scene
    const organization_id = await newOrganization('Harbour Watch')
    const email = 'watch@newcomer.example'
    await acceptInvitation(page, service, { email, organization_id, role: 'owner' }, password)
    await visit(page, '/account')
    const factor = page.getByRole('region', { name: 'Two-factor authentication' })
    const setUp = async () => {
      await factor.getByLabel('Confirm your password').fill(password)
      await factor.getByRole('button', { name: 'Set up' }).click()
      await factor.getByRole('img', { name: /^QR code/ }).waitFor()
    }
    await setUp()
    await factor.getByRole('button', { name: 'Cancel' }).click()
    await factor.getByRole('img', { name: /^QR code/ }).waitFor({ state: 'detached' })
    await setUp()
    const uri = (await factor.getByText(/^otpauth:/).textContent())!
    expect(await readQr(factor.getByRole('img', { name: /^QR code/ }))).toBe(uri)
    const code = URI.parse(uri).generate()
    await factor.getByLabel('Code', { exact: true }).fill(code === '000000' ? '000001' : '000000')
    await factor.getByRole('button', { name: 'Confirm' }).click()
    await factor.getByRole('alert').waitFor()
    await factor.getByLabel('Code', { exact: true }).fill(URI.parse(uri).generate())
    await factor.getByRole('button', { name: 'Confirm' }).click()
    const secrets = page.getByRole('dialog', { name: 'Recovery codes' })
    const [recovery = ''] = ((await secrets.locator('[data-secret] .mono').textContent()) ?? '').split(' ')
    await closeSecret(secrets)
    await factor.getByText('You enter a code each time you sign in.').waitFor()
    expect(await factor.getByRole('alert').count()).toBe(0)
    // A new browser must enter a code.
    const visitor = await openTab(await scene.browser.newContext())
    await visitor.page.goto(`${service.url}/`)
    await visitor.page.getByLabel('E-mail').fill(email)
    await visitor.page.getByLabel('Password').fill(password)
    await visitor.page.getByRole('button', { name: 'Sign in' }).click()
    await visitor.page.getByLabel('Authentication code').waitFor()
    await visitor.page.context().close()
    await factor.getByLabel('Code to turn it off').fill(recovery)
    await factor.getByRole('button', { name: 'Turn off' }).click()
    await factor.getByLabel('Confirm your password').waitFor()
  })

  test('sign-in, creation and deletion of a VM work with only the keyboard', async () => {
    const { service } = scene
    const press = (key: string) => page.keyboard.press(key)
    const type = (text: string) => page.keyboard.insertText(text)
    /** Presses Tab until an element with this name has the focus. */
    const tabTo = async (name: RegExp) => {
      const focused = () =>
        page.evaluate(() => {
          const element = document.activeElement as HTMLInputElement | null
          // Without a focused element, this is the body, whose text contains every name.
          if (element === document.body) return ''
          const label = element?.labels?.[0]?.textContent ?? ''
          return `${element?.getAttribute('aria-label') ?? ''} ${label} ${element?.textContent ?? ''}`.trim()
        })
      for (let presses = 0; presses < 150; presses += 1) {
        if (name.test(await focused())) return
        await press('Tab')
      }
      throw new Error(`Tab does not reach ${name}`)
    }
    await page.goto(`${service.url}/`)
    await page.getByLabel('E-mail').waitFor()
    await tabTo(/^E-mail/)
    await type(service.email)
    await press('Tab')
    await type(service.password)
    await press('Enter')
    await page.getByRole('navigation', { name: 'Main' }).waitFor()
    await press('c')
    await page.getByRole('heading', { level: 1, name: 'Create VM' }).waitFor()
    await page.getByLabel('Name', { exact: true }).waitFor()
    await tabTo(/^Name/)
    await press('Control+a')
    await type('by-keyboard')
    await tabTo(/SSH public key/)
    await type(sshKey)
    const create = page
      .getByRole('complementary', { name: 'Summary' })
      .getByRole('button', { name: 'Create VM' })
    await create.and(page.locator(':not([aria-disabled])')).waitFor()
    await tabTo(/^Create VM$/)
    await press('Enter')
    await page.getByRole('heading', { level: 1, name: 'by-keyboard' }).waitFor()
    await result(page, 'by-keyboard is running').waitFor()
    await press('/')
    await page.locator('[role=combobox]:focus').waitFor()
    await type('by-keyboard')
    await page
      .getByRole('option', { name: /by-keyboard/ })
      .first()
      .waitFor()
    await press('Enter')
    await dialog().waitFor({ state: 'detached' })
    await tabTo(/^Delete VM\b/)
    await press('Enter')
    await dialog().getByLabel('to confirm').and(page.locator(':focus')).waitFor()
    await type('by-keyboard')
    await press('Enter')
    await result(page, 'Deleted by-keyboard').waitFor()
    await dialog().waitFor({ state: 'detached' })
    await pressChord(page, 'g', 'v')
    await page.getByRole('heading', { level: 1, name: 'VMs' }).waitFor()
    await main().getByText('by-keyboard').first().waitFor({ state: 'detached' })
  })

  test('focus rings are not clipped', async () => {
    const { service } = scene
    await createVm(service, 'ringed', 'a40.1x')
    await page.goto(`${service.url}/`)
    await page.getByLabel('E-mail').fill(service.email)
    await page.getByLabel('Password').fill(service.password)
    await page.keyboard.press('Enter')
    await page.getByRole('navigation', { name: 'Main' }).waitFor()
    const base = `/projects/${service.project_id}`
    for (const path of ['/vms', '/disks', '/vms/new']) {
      await visit(page, base + path)
      const clipped = new Set<string>()
      for (let presses = 0; presses < 40; presses += 1) {
        await page.keyboard.press('Tab')
        const name = await page.evaluate(clippedRing)
        if (name) clipped.add(`${path}: ${name}`)
      }
      expect([...clipped]).toEqual([])
    }
  })
})

/** Runs in the page. Returns the focused element if its focus ring is clipped at the left or right; empty otherwise. */
function clippedRing(): string {
  const element = document.activeElement
  if (!element || element === document.body) return ''
  const style = getComputedStyle(element)
  if (style.outlineStyle === 'none') return ''
  const reach = Number.parseFloat(style.outlineOffset) + Number.parseFloat(style.outlineWidth)
  const box = element.getBoundingClientRect()
  for (let frame = element.parentElement; frame; frame = frame.parentElement) {
    if (getComputedStyle(frame).overflowX === 'visible') continue
    const clip = frame.getBoundingClientRect()
    // An element that is wider than its frame scrolls.
    if (box.width > clip.width) continue
    if (box.left - reach < clip.left - 0.5 || box.right + reach > clip.right + 0.5)
      return `${element.tagName} ${element.textContent || element.getAttribute('aria-label')}`
  }
  return ''
}

/** Decodes the QR code in an image. */
async function readQr(image: Locator): Promise<string> {
  const size = Number((await image.getAttribute('viewBox'))!.split(' ').at(-1))
  const cells = (await image.locator('path').getAttribute('d'))!.matchAll(/M(\d+) (\d+)/g)
  const scale = 4
  const data = new Uint8Array((size * scale) ** 2 * 3).fill(255)
  for (const [, x, y] of cells)
    for (let row = 0; row < scale; row += 1) {
      const from = (Number(y) * scale + row) * size * scale + Number(x) * scale
      data.fill(0, from * 3, (from + scale) * 3)
    }
  return decodeQr({ width: size * scale, height: size * scale, data })
}
