import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Vm } from '@slipway/sdk'
import type { Page } from 'playwright-core'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  acceptInvitation,
  createVm,
  expectNoComplaints,
  inBothThemes,
  isBrowserMissing,
  onNarrowScreen,
  openOnNarrowScreen,
  openTab,
  signIn,
  useConsole,
  visit,
  waitUntilLoaded,
} from '../support/browser.ts'
import type { Service } from '../support/service.ts'

const dist = join(import.meta.dirname, '../../../server/dist/console')
const scriptBudgetBytes = 250_000

describe.skipIf(isBrowserMissing)('the pages of the console', () => {
  const scene = useConsole('Pages', 'owner and operator')
  let service: Service
  let page: Page
  let vm: Vm

  beforeAll(async () => {
    service = scene.service
    vm = await fill(service)
  })
  beforeEach(() => {
    page = scene.page
  })

  const main = () => page.getByRole('main')

  test('the first page loads less JavaScript than the limit', async () => {
    const visitor = await openTab(await scene.browser.newContext())
    await signIn(visitor.page, service)
    await waitUntilLoaded(visitor.page)
    const names = await visitor.page.evaluate(() =>
      performance.getEntriesByType('resource').flatMap(({ name }) => (name.endsWith('.js') ? [name] : [])),
    )
    const bytes = names
      .map((name) => gzipSync(readFileSync(join(dist, new URL(name).pathname))).length)
      .reduce((sum, length) => sum + length, 0)
    expect(bytes).toBeGreaterThan(50_000)
    expect(bytes).toBeLessThan(scriptBudgetBytes)
    expectNoComplaints(visitor)
    await visitor.page.context().close()
  })

  async function checkPages(paths: Record<string, string>): Promise<void> {
    const findings: string[] = []
    for (const [name, path] of Object.entries(paths)) {
      await visit(page, path)
      findings.push(...(await inBothThemes(page, name)), ...(await onNarrowScreen(page, name)))
    }
    expect(findings).toEqual([])
  }

  test('every tenant page passes axe in both themes and fits narrow screens', async () => {
    const { project_id, organization_id } = service
    const base = `/projects/${project_id}`
    const link = await service.asOwner.organizationBilling({ organization_id })
    const [webhook] = await service.asOwner.collect('webhookList', { project_id })
    await checkPages({
      overview: base,
      vms: `${base}/vms`,
      'vm-create': `${base}/vms/new`,
      vm: `${base}/vms/${vm.id}`,
      'vm-gone': `${base}/vms/00000000-0000-7000-8000-000000000000`,
      disks: `${base}/disks`,
      snapshots: `${base}/snapshots`,
      images: `${base}/images`,
      firewall: `${base}/network/firewall`,
      networks: `${base}/network/networks`,
      addresses: `${base}/network/addresses`,
      usage: `${base}/usage`,
      activity: `${base}/activity`,
      'access-keys': `${base}/settings/keys`,
      'ssh-keys': `${base}/settings/ssh-keys`,
      members: `${base}/settings/members`,
      webhooks: `${base}/settings/webhooks`,
      webhook: `${base}/settings/webhooks/${webhook!.id}`,
      billing: `${base}/settings/billing`,
      project: `${base}/settings/project`,
      organization: `${base}/settings/organization`,
      account: '/account',
      catalogue: '/catalogue',
      'billing-dashboard': new URL(link.url).pathname,
      'billing-link-ended': '/billing/slpb_ended',
    })
  }, 240_000)

  test('every operator page passes axe in both themes and fits narrow screens', async () => {
    const hosts = await service.operator.collect('adminHostList', {})
    const host = hosts.find(({ vms }) => vms.length > 0)!
    await checkPages({
      fleet: '/fleet',
      'fleet-host': `/fleet/hosts/${host.id}`,
      'fleet-vms': '/fleet/vms',
      'fleet-capacity': '/fleet/capacity',
      'fleet-health': '/fleet/health?by=host',
      'fleet-operations': '/fleet/operations?show=all',
      'fleet-organizations': '/fleet/organizations',
      'fleet-organization': `/fleet/organizations/${service.organization_id}`,
      'fleet-users': '/fleet/users',
      'fleet-quotas': '/fleet/quotas',
      'fleet-prices': '/fleet/prices',
      'fleet-images': '/fleet/images',
      'fleet-audit': '/fleet/audit',
    })
  }, 240_000)

  test('dialogs and menus pass axe in both themes', async () => {
    const findings: string[] = []
    const base = `/projects/${service.project_id}`
    const open = async (name: string, button: string | RegExp) => {
      await page.getByRole('button', { name: button }).first().click()
      await page.getByRole('dialog').or(page.getByRole('menu')).first().waitFor()
      const part = '[data-modal], [role=menu]'
      findings.push(
        ...(await inBothThemes(page, name, part)),
        ...(await openOnNarrowScreen(page, name, part)),
      )
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').or(page.getByRole('menu')).waitFor({ state: 'detached' })
    }
    const goTo = (path: string) => visit(page, base + path)
    await goTo('')
    await open('dialog-search', 'Search')
    await open('dialog-help', 'Help and shortcuts')
    await open('menu-project', /^Project/)
    await goTo('/disks')
    await open('dialog-disk', 'Create disk')
    await goTo('/network/firewall')
    await open('dialog-rule', 'Create rule')
    await goTo('/settings/keys')
    await open('dialog-key', 'Create project key')
    await goTo(`/vms/${vm.id}`)
    await open('dialog-delete-vm', 'Delete VM')
    await open('dialog-edit-vm', /^Edit name/)
    await open('dialog-attach', 'Attach disk')
    // Operator pages do not belong to a project.
    await visit(page, '/fleet')
    await page.getByRole('button', { name: 'Project Whole fleet' }).waitFor()
    expect(findings).toEqual([])
  })

  test('the layout does not shift while pages load', async () => {
    const { page } = await openTab(scene.page.context())
    await page.addInitScript(() => {
      const shifts = { sum: 0 }
      Object.assign(window, { shifts })
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries())
          shifts.sum += (entry as PerformanceEntry & { value: number }).value
      }).observe({ type: 'layout-shift', buffered: true })
    })
    const base = `${service.url}/projects/${service.project_id}`
    for (const path of ['', '/vms', '/vms/new', `/vms/${vm.id}`]) {
      await page.goto(base + path)
      await waitUntilLoaded(page)
      const sum = await page.evaluate(() => (window as unknown as { shifts: { sum: number } }).shifts.sum)
      expect(sum, path).toBeLessThan(0.1)
    }
    await page.close()
  })

  test('a resource whose name is not loaded yet is not shown as deleted', async () => {
    const { project_id } = service
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    await page.route(/\/vpc\/subnets\?/, (route) => released.then(() => route.continue()))
    await page.goto(`${service.url}/projects/${project_id}/vms/${vm.id}`)
    const network = main().getByRole('region', { name: 'Network' })
    await network.getByText('Allow tcp 22 from anywhere to every VM').waitFor()
    expect(await network.getByText('deleted resource').count()).toBe(0)
    release()
    await network.getByText('default-subnet-us-east1-a').waitFor()
  })

  test('usage is drawn by day and product, and the table adds up to the total', async () => {
    const month = new Date().toISOString().slice(0, 7)
    const products = ['a100.4x', 'l40s-48gb.2x', 'persistent-ssd']
    const items = Array.from({ length: 12 }, (_, day) =>
      products.map((product_name, index) => ({
        date: `${month}-${String(day + 1).padStart(2, '0')}`,
        project_id: service.project_id,
        location: 'us-east1-a',
        resource_type: index < 2 ? 'vm' : 'disk',
        product_name,
        quantity: 24,
        unit: index < 2 ? 'vm_hour' : 'gb_hour',
        usd: (3 - index) * (10 + (day % 5)),
      })),
    ).flat()
    await page.route(/\/usage\?/, (route) =>
      route.fulfill({ json: { items, updated_at: `${month}-13T00:05:00.000Z` } }),
    )
    const itemized = items.reduce((sum, { usd }) => sum + usd, 0)
    const costs = await service.asOwner.projectCosts({ project_id: service.project_id })
    const soFar = {
      as_of: `${month}-16T08:00:00.000Z`,
      today_usd: 12.5,
      month_to_date_usd: itemized + 120 + 12.5,
      forecast_usd: 3 * itemized,
    }
    await page.route(/\/costs$/, (route) => route.fulfill({ json: { ...costs, ...soFar } }))
    await page.goto(`${service.url}/projects/${service.project_id}/usage`)
    await main()
      .getByText(new RegExp(`^${itemized + 132}\\.50 USD in \\w+ \\d{4} so far$`))
      .waitFor()
    await page.getByRole('img', { name: /Daily cost .* by product/ }).waitFor()
    const table = main().getByRole('table', { name: 'By product' })
    await table.getByText('288 VM-hours').first().waitFor()
    await table.getByRole('columnheader', { name: /^\w+ \d{4} \(USD\)$/ }).waitFor()
    for (const name of [
      new RegExp(`^\\w+ 1\\s–\\s12, \\d{4} ${itemized}\\.00 `),
      /^\w+ 13\s–\s15, \d{4}, not yet itemized 120\.00$/,
      /^Today so far, not yet itemized 12\.50$/,
      new RegExp(`^\\w+ \\d{4} so far ${itemized + 132}\\.50$`),
    ])
      await table.getByRole('row', { name }).waitFor()
    await main()
      .getByText(/^\w+ 13\s–\s15, \d{4} 120\.00 USD, Today so far 12\.50 USD, not yet itemized$/)
      .waitFor()
    const findings = [
      ...(await inBothThemes(page, 'usage-month')),
      ...(await onNarrowScreen(page, 'usage-month')),
    ]
    expect(findings).toEqual([])
  })

  test('an error shows advice and the request ID', async () => {
    await page.route(/\/disks\?/, (route) =>
      route.fulfill({
        status: 500,
        json: {
          code: 'internal_error',
          message: 'Internal error. It is safe to try again.',
          request_id: 'request-7',
        },
      }),
    )
    await page.goto(`${service.url}/projects/${service.project_id}/disks`)
    await main().getByText('send the request ID to the operator').waitFor()
    await main().getByText('request-7').waitFor()
    expect(await inBothThemes(page, 'disks-error')).toEqual([])
    await main().getByRole('button', { name: 'Try again' }).waitFor()
    await page.unroute(/\/disks\?/)
    // The page also retries automatically, which may remove the button before the click.
    await page.evaluate(() => {
      const buttons = [...document.querySelectorAll('button')]
      buttons.find(({ textContent }) => textContent === 'Try again')?.click()
    })
    await main()
      .getByRole('row', { name: /datasets/ })
      .waitFor()
  })

  test('sign-in, setup and invitation pass axe and fit narrow screens', async () => {
    const findings: string[] = []
    const visitor = await openTab(await scene.browser.newContext({ viewport: page.viewportSize() }))
    for (const [name, path] of [
      ['sign-in', '/sign-in'],
      ['forgot', '/forgot'],
      ['set-up', '/setup?code=slpc_example'],
      ['accept', '/accept#code=slpc_example'],
    ] as const) {
      await visitor.page.goto(service.url + path)
      await waitUntilLoaded(visitor.page)
      findings.push(
        ...(await inBothThemes(visitor.page, name)),
        ...(await onNarrowScreen(visitor.page, name)),
      )
    }
    expect(findings).toEqual([])
    await visitor.page.goto(`${service.url}/forgot`)
    await visitor.page.getByText('This service does not send e-mail. Ask the operator').waitFor()
    expectNoComplaints(visitor)
    await visitor.page.getByRole('link', { name: 'Back to sign-in' }).click()
    await visitor.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await visitor.page.context().close()
  })

  test('a viewer can see everything, and disabled buttons name the required role', async () => {
    const { organization_id } = service
    const viewer = await openTab(await scene.browser.newContext())
    await acceptInvitation(
      viewer.page,
      service,
      { email: 'eve@pages.example', organization_id, role: 'viewer' },
      'only-looking',
    )
    await viewer.page.getByRole('link', { name: 'Disks' }).click()
    await viewer.page.getByRole('row', { name: /datasets/ }).waitFor()
    // The button is disabled once the role is loaded.
    const create = viewer.page.getByRole('button', { name: 'Create disk', disabled: true })
    await create.waitFor()
    await create.hover()
    await viewer.page.getByText('This requires the member role. Your role is viewer.').waitFor()
    await viewer.page.context().close()
  })
})

/** Creates resources, so that every page has content. */
async function fill(service: Service): Promise<Vm> {
  const { tenant } = service
  const { project_id } = service
  const disk = { size: '500GiB', location: 'us-east1-a' }
  const [vm, , stopped] = await Promise.all([
    createVm(service, 'train-7', 'a100.4x'),
    createVm(service, 'inference-gateway-production', 'l40s-48gb.2x'),
    createVm(service, 'notebook', 'a40.1x'),
    service.asOwner.webhookCreate({ project_id }, { url: 'http://127.0.0.1:9/slipway' }),
    tenant.diskCreate({ project_id }, { ...disk, name: 'datasets' }),
    tenant.diskCreate({ project_id }, { ...disk, name: 'corpus', size: '2TiB', type: 'shared-volume' }),
  ])
  await tenant.vmUpdate({ project_id, vm_id: stopped.id }, { action: 'STOP' })
  return vm
}
