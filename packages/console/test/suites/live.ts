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
import { openLine } from '../support/line.ts'

const isLive = (on: Page) => on.getByRole('banner').getByText('Live', { exact: true })
const isReconnecting = (on: Page) => on.getByRole('banner').getByText('Reconnecting', { exact: true })
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

  test('a VM that is made elsewhere appears in the list without a reload', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await createVm(service, 'was-there', 'a40.1x', project_id)
    await open(project_id, '/vms')
    await vmRow(page, 'was-there').waitFor()
    await service.asOwner.vmCreate({ project_id }, vmRequest('comes-later', 'a40.1x'))
    await vmRow(page, 'comes-later').getByText('running').waitFor()
  })

  test('a list that is open shows a price soon after it has changed', async () => {
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
    await page.getByText('1 VM: 1 running · 1.80 USD/h').waitFor()
    await setPrice(2.5)
    await page.clock.fastForward(60_000)
    await page.getByText('1 VM: 1 running · 2.50 USD/h').waitFor()
    await page.close()
  })

  test('a page goes on through a restart of the server in the middle of a creation', async () => {
    const { service } = scene
    const project_id = takeProject(service)
    // The machine does not start before the server has.
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

  test('events are shown again after a restart of the server', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await createDisk(project_id, 'before-the-storm')
    await open(project_id, '/disks')
    await diskRow(page, 'before-the-storm').waitFor()
    await isLive(page).waitFor()
    await service.stop()
    await isReconnecting(page).waitFor()
    await service.start()
    await isLive(page).waitFor({ timeout: 60_000 })
    await createDisk(project_id, 'after-the-storm')
    await diskRow(page, 'after-the-storm').getByText('available').waitFor()
  }, 240_000)

  test('a change between the first reading and the start of the stream is shown', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const vm = await createVm(service, 'quick', 'a40.1x', project_id)
    // The page reads the VM as it was before, and the stream begins behind all that has happened to it.
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

  test('a page is shown as it is, though it changed while it was read for the first time', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const vm = await createVm(service, 'first-name', 'a40.1x', project_id)
    const read = await holdAnswer(page, `**/v0.1/projects/${project_id}/vms/${vm.id}`)
    await load(project_id, `/vms/${vm.id}`)
    await read.isAsked
    await isLive(page).waitFor()
    const isHeard = page.waitForRequest('**/alerts')
    await service.asOwner.vmUpdate({ project_id, vm_id: vm.id }, { name: 'second-name' })
    await isHeard
    read.release()
    await page.getByRole('heading', { level: 1, name: 'second-name' }).waitFor()
  })

  test('a row is shown as it is, though it changed while its list was read again', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const { operation } = await createDisk(project_id, 'first-name')
    const { result: disk } = await service.asOwner.wait<Disk>({ project_id }, operation)
    const stream = await holdBack(page, '**/events?limit=20')
    await load(project_id, '/disks')
    await diskRow(page, 'first-name').waitFor()
    const read = await holdAnswer(page, '**/disks?limit=500')
    stream.release()
    await read.isAsked
    await isLive(page).waitFor()
    const isHeard = page.waitForRequest('**/alerts')
    await service.asOwner.diskUpdate({ project_id, disk_id: disk.id }, { name: 'second-name' })
    await isHeard
    read.release()
    await diskRow(page, 'second-name').waitFor()
  })

  test('a row is shown as it is, though an earlier reading of it is answered last', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const { operation } = await createDisk(project_id, 'first-name')
    const { result: disk } = await service.asOwner.wait<Disk>({ project_id }, operation)
    await open(project_id, '/disks')
    await isLive(page).waitFor()
    await diskRow(page, 'first-name').waitFor()
    const earlier = await holdAnswer(page, '**/disks?ids=*')
    const rename = (name: string) => service.asOwner.diskUpdate({ project_id, disk_id: disk.id }, { name })
    await rename('second-name')
    await earlier.isAsked
    const isHeard = page.waitForResponse('**/alerts')
    await rename('third-name')
    await isHeard
    const isAnswered = page.waitForEvent('requestfinished', (request) => /disks\?ids=/.test(request.url()))
    earlier.release()
    await isAnswered
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))))
    await diskRow(page, 'third-name').waitFor()
  })

  describe('over a line that fails', () => {
    let line: Awaited<ReturnType<typeof openLine>>
    let far: Tab
    let projectId: string
    let context: BrowserContext
    beforeAll(async () => {
      line = await openLine(scene.service.url)
      context = await scene.browser.newContext()
      const { page } = await openTab(context)
      await signIn(page, { ...scene.service, url: line.url })
      await page.close()
    })
    beforeEach(async () => {
      projectId = takeProject(scene.service)
      far = await openTab(context)
      await far.page.clock.install()
    })
    afterEach(async () => {
      line.restore()
      expectNoComplaints(far)
      await far.page.close()
    })
    afterAll(async () => {
      await context?.close()
      await line?.close()
    })

    async function openDisks() {
      await createDisk(projectId, 'made-before')
      await far.page.goto(`${line.url}/projects/${projectId}/disks`)
      await diskRow(far.page, 'made-before').waitFor()
      await isLive(far.page).waitFor()
    }

    test('a page catches up when its line was cut and comes back', async () => {
      await openDisks()
      line.cut()
      await isReconnecting(far.page).waitFor()
      await createDisk(projectId, 'made-meanwhile')
      line.restore()
      await isLive(far.page).waitFor()
      await diskRow(far.page, 'made-meanwhile').waitFor()
    })

    test('a page catches up when its stream has gone silent without an end', async () => {
      await openDisks()
      line.silence()
      // The service sends a comment every 15 s. One that is late is no reason to doubt the line.
      await far.page.clock.runFor(20_000)
      await isLive(far.page).waitFor()
      await far.page.clock.runFor(30_000)
      await isReconnecting(far.page).waitFor()
      await createDisk(projectId, 'made-meanwhile')
      line.cut()
      line.restore()
      await isLive(far.page).waitFor()
      await diskRow(far.page, 'made-meanwhile').waitFor()
    })

    test('a page whose line is cut before its stream begins says so and comes back', async () => {
      const stream = await holdBack(far.page, '**/events?limit=20')
      await far.page.goto(`${line.url}/projects/${projectId}/disks`)
      await far.page.getByText('No disks yet').waitFor()
      line.cut()
      stream.release()
      await isReconnecting(far.page).waitFor()
      line.restore()
      await isLive(far.page).waitFor()
    })

    test('a page whose code is being loaded when the line is cut opens when the line is back', async () => {
      await far.page.goto(`${line.url}/projects/${projectId}`)
      await isLive(far.page).waitFor()
      const code = await holdBack(far.page, '**/assets/disks-*.js')
      await far.page.getByRole('link', { name: 'Disks' }).click()
      await code.isAsked
      line.cut()
      code.release()
      await isReconnecting(far.page).waitFor()
      await createDisk(projectId, 'made-meanwhile')
      line.restore()
      await diskRow(far.page, 'made-meanwhile').waitFor()
    })
  })
})

/** Keeps requests waiting until they are released. */
async function holdBack(page: Page, url: string) {
  const gate = newGate()
  await page.route(url, async (route) => {
    gate.ask()
    await gate.isReleased
    await route.continue()
  })
  return gate
}

/** Keeps the answer to one request waiting: what it says was true when it was asked. */
async function holdAnswer(page: Page, url: string) {
  const gate = newGate()
  const hold = async (route: Route) => {
    const response = await route.fetch()
    gate.ask()
    await gate.isReleased
    await route.fulfill({ response })
  }
  await page.route(url, hold, { times: 1 })
  return gate
}

function newGate() {
  let release = () => {}
  let ask = () => {}
  const isReleased = new Promise<void>((resolve) => {
    release = resolve
  })
  const isAsked = new Promise<void>((resolve) => {
    ask = resolve
  })
  return { isAsked, ask, isReleased, release }
}
