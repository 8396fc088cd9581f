import { connectLevers } from '@slipway/sdk/testing'
import { type InProcessServer, startInProcessServer } from '@slipway/testing/in-process-server.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  expectNoComplaints,
  inBothThemes,
  isBrowserMissing,
  modalOf,
  onNarrowScreen,
  openTab,
  signIn,
  type Tab,
  useConsole,
} from '../support/browser.ts'
import type { Service } from '../support/service.ts'

describe.skipIf(isBrowserMissing)('dev mode', () => {
  const scene = useConsole('Levers', 'operator')
  let server: InProcessServer
  let levers: ReturnType<typeof connectLevers>
  let tab: Tab
  beforeAll(async () => {
    server = await startInProcessServer(undefined, ['--dev'])
    levers = connectLevers({ url: server.api_url, operatorKey: server.operator_key })
  })
  afterAll(() => server?.close())
  beforeEach(() => levers.reset())

  async function open(email: string, password: string) {
    const context = await scene.browser.newContext({ reducedMotion: 'reduce' })
    tab = await openTab(context)
    await signIn(tab.page, { url: server.api_url } as Service, { email, password })
    return { page: tab.page, bar: tab.page.getByRole('region', { name: 'Dev mode' }) }
  }
  const nowMs = async () => Date.parse((await levers.clock.get()).now)

  test('an operator advances, freezes and resets the clock, and sees the number of faults', async () => {
    await levers.faults.create({ on: 'vm-create', effect: 'fail' })
    const { page, bar } = await open(server.operator_email, server.operator_password)
    await bar.getByText('1 active fault').waitFor()
    await bar.getByText('Clock runs').waitFor()
    await bar.getByRole('button', { name: 'Freeze' }).click()
    await bar.getByText('Clock frozen').waitFor()
    const start = await nowMs()
    const press = (name: string) => bar.getByRole('button', { name }).click()
    await press('+1 h')
    await expect.poll(nowMs).toBe(start + 3_600_000)
    await press('+1 day')
    await expect.poll(nowMs).toBe(start + 90_000_000)
    await press('End of month')
    await expect.poll(async () => new Date(await nowMs()).getUTCDate(), { timeout: 30_000 }).toBe(1)
    await bar.locator('button[aria-busy]').first().waitFor({ state: 'detached' })
    expect(await inBothThemes(page, 'dev-bar')).toEqual([])
    expect(await onNarrowScreen(page, 'dev-bar')).toEqual([])
    await bar.getByRole('button', { name: 'Run' }).click()
    await bar.getByText('Clock runs').waitFor()

    await bar.getByRole('button', { name: 'Reset' }).click()
    await modalOf(page).getByRole('button', { name: 'Reset service' }).click()
    await modalOf(page).waitFor({ state: 'detached' })
    await bar.getByText('No faults').waitFor()
    expect(Math.abs((await nowMs()) - Date.now())).toBeLessThan(60_000)
    expectNoComplaints(tab)
    await page.context().close()
  })

  test('a user who is not an operator sees only that the service is in dev mode', async () => {
    const { page, bar } = await open(server.email, server.password)
    await bar.getByText('Local service in dev mode').waitFor()
    expect(await bar.getByRole('button').count()).toBe(0)
    expectNoComplaints(tab)
    await page.context().close()
  })

  test('without dev mode, the console shows no dev mode bar and does not load its code', async () => {
    const { page } = scene
    const requested: string[] = []
    page.on('request', (request) => requested.push(new URL(request.url()).pathname))
    await page.reload()
    await page.getByRole('navigation', { name: 'Main' }).waitFor()
    expect(await page.getByText('Local service in dev mode').count()).toBe(0)
    expect(requested.filter((path) => path.startsWith('/_dev') || /dev-bar/.test(path))).toEqual([])
  })
})
