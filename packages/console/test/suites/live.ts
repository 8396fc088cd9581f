import type { Disk } from '@slipway/sdk'
import type { BrowserContext, Page, Route } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, onTestFinished, test } from 'vitest'
import {
  createVm,
  expectNoComplaints,
  isBrowserMissing,
  openTab,
  signIn,
  type Tab,
  takeProject,
  useConsole,
  visit,
  vmRequest,
} from '../support/browser.ts'
import { openFaultyProxy } from '../support/faulty-proxy.ts'

const liveMark = (on: Page) => on.getByRole('banner').getByText('Live', { exact: true })
const reconnectingMark = (on: Page) => on.getByRole('banner').getByText('Reconnecting', { exact: true })
const rowOf = (table: string) => (on: Page, name: string) =>
  on.getByRole('table', { name: table }).getByRole('row', { name: new RegExp(name) })
const [vmRow, diskRow] = [rowOf('VMs'), rowOf('Disks')]

describe.skipIf(isBrowserMissing)('live updates of the console', () => {
  const scene = useConsole('Live')

  const main = () => scene.page.getByRole('main')
  const open = (projectId: string, path: string) => visit(scene.page, `/projects/${projectId}${path}`)
  const load = (projectId: string, path: string) =>
    scene.page.goto(`${scene.service.url}/projects/${projectId}${path}`)
  const createDisk = (project_id: string, name: string) =>
    scene.service.asOwner.diskCreate({ project_id }, { name, size: '10GiB', location: 'us-east1-a' })

  test('a VM that is created elsewhere appears in the list without a reload', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await createVm(service, 'was-there', 'a40.1x', project_id)
    await open(project_id, '/vms')
    await vmRow(page, 'was-there').waitFor()
    await service.asOwner.vmCreate({ project_id }, vmRequest('comes-later', 'a40.1x'))
    await vmRow(page, 'comes-later').getByText('running').waitFor()
  })

  test('an open list shows a changed price without a reload', async () => {
    const { service } = scene
    const project_id = takeProject(service)
    await createVm(service, 'priced', 'a40.2x', project_id)
    const setPrice = (usd: number) =>
      service.operator.adminPriceSet({ items: [{ product_name: 'a40.2x', unit: 'vm_hour', usd }] })
    onTestFinished(async () => {
      await setPrice(1.8)
    })
    const { page } = await openTab(scene.page.context())
    await page.clock.install()
    await page.goto(`${service.url}/projects/${project_id}/vms`)
    await page.getByText('1 VM: 1 running for 1.80 USD/h').waitFor()
    await setPrice(2.5)
    await page.clock.fastForward(60_000)
    await page.getByText('1 VM: 1 running for 2.50 USD/h').waitFor()
    await page.close()
  })

  test('a page recovers from a restart of the server during a creation', async () => {
    const { service } = scene
    const project_id = takeProject(service)
    // The VM does not start before the server has restarted.
    await service.sql(
      `INSERT INTO simulated_faults (method, kind, delay_ms, remaining) VALUES ('ensureVm', 'fail', 0, 1000)`,
    )
    const { operation } = await service.asOwner.vmCreate({ project_id }, vmRequest('survivor', 'a40.1x'))
    await open(project_id, `/vms/${operation.metadata.id}`)
    await main().getByText('survivor').first().waitFor()
    await service.stop()
    await service.start()
    await service.sql('DELETE FROM simulated_faults')
    await main().getByText('running', { exact: true }).first().waitFor({ timeout: 60_000 })
    await main().getByText('This simulated VM has no SSH.').waitFor()
  }, 240_000)

  test('live updates resume after a restart of the server', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await createDisk(project_id, 'before-the-storm')
    await open(project_id, '/disks')
    await diskRow(page, 'before-the-storm').waitFor()
    await liveMark(page).waitFor()
    await service.stop()
    await reconnectingMark(page).waitFor()
    await service.start()
    await liveMark(page).waitFor({ timeout: 60_000 })
    await createDisk(project_id, 'after-the-storm')
    await diskRow(page, 'after-the-storm').getByText('available').waitFor()
  }, 240_000)

  test('a change between the first read and the start of the event stream is shown', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const vm = await createVm(service, 'quick', 'a40.1x', project_id)
    // The page reads an old state of the VM, and the stream starts after the event about the change.
    const json = { ...vm, state: 'STATE_CREATING' }
    await page.route(`**/v0.1/projects/${project_id}/vms/${vm.id}`, (route) => route.fulfill({ json }), {
      times: 1,
    })
    const stream = await holdBack(page, '**/events?limit=20')
    await load(project_id, `/vms/${vm.id}`)
    await main()
      .getByText(/^creating/)
      .first()
      .waitFor()
    stream.release()
    await main().getByText('running', { exact: true }).first().waitFor()
  })

  test('a page is up to date if its resource changes during the first read', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const vm = await createVm(service, 'first-name', 'a40.1x', project_id)
    const read = await holdResponse(page, `**/v0.1/projects/${project_id}/vms/${vm.id}`)
    await load(project_id, `/vms/${vm.id}`)
    await read.requested
    await liveMark(page).waitFor()
    // The page reads the alerts after every event.
    const eventReceived = page.waitForRequest('**/alerts')
    await service.asOwner.vmUpdate({ project_id, vm_id: vm.id }, { name: 'second-name' })
    await eventReceived
    read.release()
    await page.getByRole('heading', { level: 1, name: 'second-name' }).waitFor()
  })

  test('a row is up to date if it changes while its list is refetched', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const { operation } = await createDisk(project_id, 'first-name')
    const { result: disk } = await service.asOwner.wait<Disk>({ project_id }, operation)
    const stream = await holdBack(page, '**/events?limit=20')
    await load(project_id, '/disks')
    await diskRow(page, 'first-name').waitFor()
    const read = await holdResponse(page, '**/disks?limit=500')
    stream.release()
    await read.requested
    await liveMark(page).waitFor()
    const eventReceived = page.waitForRequest('**/alerts')
    await service.asOwner.diskUpdate({ project_id, disk_id: disk.id }, { name: 'second-name' })
    await eventReceived
    read.release()
    await diskRow(page, 'second-name').waitFor()
  })

  test('a row is up to date if the response to an earlier read arrives last', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const { operation } = await createDisk(project_id, 'first-name')
    const { result: disk } = await service.asOwner.wait<Disk>({ project_id }, operation)
    await open(project_id, '/disks')
    await liveMark(page).waitFor()
    await diskRow(page, 'first-name').waitFor()
    const earlier = await holdResponse(page, '**/disks?ids=*')
    const rename = (name: string) => service.asOwner.diskUpdate({ project_id, disk_id: disk.id }, { name })
    await rename('second-name')
    await earlier.requested
    const eventReceived = page.waitForResponse('**/alerts')
    await rename('third-name')
    await eventReceived
    const responseEnded = page.waitForEvent('requestfinished', (request) => /disks\?ids=/.test(request.url()))
    earlier.release()
    await responseEnded
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))))
    await diskRow(page, 'third-name').waitFor()
  })

  describe('over an unreliable connection', () => {
    let proxy: Awaited<ReturnType<typeof openFaultyProxy>>
    let far: Tab
    let projectId: string
    let context: BrowserContext
    beforeAll(async () => {
      proxy = await openFaultyProxy(scene.service.url)
      context = await scene.browser.newContext()
      const { page } = await openTab(context)
      await signIn(page, { ...scene.service, url: proxy.url })
      await page.close()
    })
    beforeEach(async () => {
      projectId = takeProject(scene.service)
      far = await openTab(context)
      await far.page.clock.install()
    })
    afterEach(async () => {
      proxy.restore()
      expectNoComplaints(far)
      await far.page.close()
    })
    afterAll(async () => {
      await context?.close()
      await proxy?.close()
    })

    async function openDisks() {
      await createDisk(projectId, 'made-before')
      await far.page.goto(`${proxy.url}/projects/${projectId}/disks`)
      await diskRow(far.page, 'made-before').waitFor()
      await liveMark(far.page).waitFor()
    }

    test('a page shows what it missed after the connection was cut', async () => {
      await openDisks()
      proxy.cut()
      await reconnectingMark(far.page).waitFor()
      await createDisk(projectId, 'made-meanwhile')
      proxy.restore()
      await liveMark(far.page).waitFor()
      await diskRow(far.page, 'made-meanwhile').waitFor()
    })

    test('a page whose stream is silent but not closed reconnects and shows what it missed', async () => {
      await openDisks()
      proxy.silence()
      // The service sends a comment every 15 s. A late comment is not an error yet.
      await far.page.clock.runFor(20_000)
      await liveMark(far.page).waitFor()
      await far.page.clock.runFor(30_000)
      await reconnectingMark(far.page).waitFor()
      await createDisk(projectId, 'made-meanwhile')
      proxy.cut()
      proxy.restore()
      await liveMark(far.page).waitFor()
      await diskRow(far.page, 'made-meanwhile').waitFor()
    })

    test('a page reconnects if the connection is cut before its stream starts', async () => {
      const stream = await holdBack(far.page, '**/events?limit=20')
      await far.page.goto(`${proxy.url}/projects/${projectId}/disks`)
      await far.page.getByText('No disks yet').waitFor()
      proxy.cut()
      stream.release()
      await reconnectingMark(far.page).waitFor()
      proxy.restore()
      await liveMark(far.page).waitFor()
    })

    test('a page opens after a reconnect if the connection was cut while its code was loading', async () => {
      await far.page.goto(`${proxy.url}/projects/${projectId}`)
      await liveMark(far.page).waitFor()
      const code = await holdBack(far.page, '**/assets/disks-*.js')
      await far.page.getByRole('link', { name: 'Disks' }).click()
      await code.requested
      proxy.cut()
      code.release()
      await reconnectingMark(far.page).waitFor()
      await createDisk(projectId, 'made-meanwhile')
      proxy.restore()
      await diskRow(far.page, 'made-meanwhile').waitFor()
    })
  })
})

/** Delays requests until they are released. */
async function holdBack(page: Page, url: string) {
  const gate = newGate()
  await page.route(url, async (route) => {
    gate.markRequested()
    await gate.released
    await route.continue()
  })
  return gate
}

/** Delays the response to one request. The response contains the state at the time of the request. */
async function holdResponse(page: Page, url: string) {
  const gate = newGate()
  const hold = async (route: Route) => {
    const response = await route.fetch()
    gate.markRequested()
    await gate.released
    await route.fulfill({ response })
  }
  await page.route(url, hold, { times: 1 })
  return gate
}

function newGate() {
  let release = () => {}
  let markRequested = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const requested = new Promise<void>((resolve) => {
    markRequested = resolve
  })
  return { requested, markRequested, released, release }
}
