import type { Vm } from '@slipway/sdk'
import type { Page } from 'playwright-core'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  createVm,
  inBothThemes,
  isBrowserMissing,
  modalOf,
  screenshot,
  useConsole,
  visit,
} from '../support/browser.ts'
import type { Service } from '../support/service.ts'

describe.skipIf(isBrowserMissing)('large lists in the console', () => {
  const scene = useConsole('Large', 'owner and operator')
  let service: Service
  let page: Page
  let vm: Vm

  beforeAll(async () => {
    service = scene.service
    vm = await createVm(service, 'model', 'a40.1x')
  })
  beforeEach(() => {
    page = scene.page
  })

  const main = () => page.getByRole('main')
  const dialog = () => modalOf(page)
  const open = (path: string) => visit(page, `/projects/${service.project_id}${path}`)

  test('hundreds of rows have no gaps or overlaps after the width of the window changes', async () => {
    const { project_id } = service
    const items: Vm[] = Array.from({ length: 301 }, (_, index) => ({
      ...vm,
      id: vm.id.slice(0, -4) + String(1000 + index),
      name: `vm-${index}`,
      ...(index % 3 === 0 && { network_interfaces: [] }),
    }))
    await page.route(/\/vms\?.*limit=500/, (route) => route.fulfill({ json: { items, next_page_token: '' } }))
    await page.goto(`${service.url}/projects/${project_id}/vms`)
    for (const width of [1280, 390, 1280]) {
      await page.setViewportSize({ width, height: 860 })
      await main().getByRole('row', { name: /vm-0/ }).waitFor()
      await expect.poll(() => gapsBetweenRows()).toEqual([])
    }
    const table = main().getByRole('table')
    const edges = () => table.getAttribute('data-cut')
    await expect.poll(edges).toBe('')
    // Less important columns move below the name if there is no room.
    await page.setViewportSize({ width: 768, height: 860 })
    const titles = () => table.getByRole('columnheader').allTextContents()
    await expect.poll(titles).toEqual(['', 'Name', 'Type', 'State', 'USD/h', 'Actions'])
    await table
      .getByRole('row', {
        name: /vm-1 a40\.1x running 0\.90 .* Address .* Age \d+ .*Location us-east1-a/,
      })
      .waitFor()
    await expect.poll(edges).toBe('')
    await expect.poll(() => gapsBetweenRows()).toEqual([])
    await service.asOwner.diskCreate(
      { project_id },
      { name: 'corpus', size: '10GiB', location: 'us-east1-a', labels: { team: 'vision' } },
    )
    await open('/disks')
    await expect.poll(titles).toEqual(['Name', 'Type', 'State', 'Actions'])
    await table
      .getByRole('row', {
        name: /corpus persistent-ssd .* Size 10 GiB .* Location us-east1-a.* Labels team/,
      })
      .waitFor()
    await expect.poll(edges).toBe('')
    // If columns are cut off at an edge, the table fades out there.
    await table.evaluate((frame) => frame.style.setProperty('width', '200px'))
    await expect.poll(edges).toBe('right')
    await table.locator('> div').evaluate((frame) => frame.scrollTo(frame.scrollWidth, 0))
    await expect.poll(edges).toBe('left')
    await page.setViewportSize({ width: 1280, height: 860 })
    // A field offers only a few of many names, and filters them by the input.
    await open('/network/firewall')
    await page.getByRole('button', { name: 'Create rule' }).click()
    const offered = dialog().locator('datalist').first().locator('option')
    await expect.poll(() => offered.count()).toBe(50)
    await dialog().getByLabel('Source: add').fill('vm-300')
    await expect.poll(() => offered.count()).toBe(1)
    // One of many VMs is chosen by its name.
    await open('/disks')
    await main()
      .getByRole('row', { name: /corpus/ })
      .getByRole('button', { name: 'Attach' })
      .click()
    const attach = dialog().getByRole('button', { name: 'Attach disk' })
    await dialog().getByLabel('VM').fill('vm-3000')
    await dialog().getByText('No matching VM.').waitFor()
    expect(await attach.isEnabled()).toBe(false)
    await dialog().getByLabel('VM').fill('vm-30')
    await expect.poll(() => attach.isEnabled()).toBe(true)
  })

  /** Returns the gaps and overlaps between consecutive visible rows, in pixels. */
  const gapsBetweenRows = () =>
    page.evaluate(() => {
      const boxes = [...document.querySelectorAll('[role=rowgroup] > [role=row]')]
        .map((row) => row.getBoundingClientRect())
        .toSorted((a, b) => a.top - b.top)
      return boxes
        .map(({ top }, index) => (index === 0 ? 0 : Math.round(top - boxes[index - 1]!.bottom)))
        .filter((gap) => Math.abs(gap) > 1)
    })

  test('a list of ten thousand VMs renders only the visible rows', async () => {
    const total = 10_000
    const pageSize = 500
    await page.route(/\/vms\?/, async (route) => {
      const url = new URL(route.request().url())
      const from = Number(url.searchParams.get('page_token') || 0)
      const items = Array.from({ length: pageSize }, (_, index) => ({
        ...vm,
        id: `vm-${from + index}`,
        name: `vm-${from + index}`,
      }))
      const next = from + pageSize
      await route.fulfill({ json: { items, next_page_token: next < total ? String(next) : '' } })
    })
    await page.goto(`${service.url}/projects/${service.project_id}/vms`)
    const table = page.getByRole('table', { name: 'VMs' })
    await table.getByRole('link', { name: 'vm-0', exact: true }).waitFor()
    expect(await table.getAttribute('aria-rowcount')).toBe(String(total + 1))
    await table.locator('> div').evaluate((frame) => frame.scrollTo(0, frame.scrollHeight))
    await table.getByRole('link', { name: `vm-${total - 1}`, exact: true }).waitFor()
    expect(await table.getByRole('row').count()).toBeLessThan(80)
    await screenshot(page, 'vms-ten-thousand')
  })

  test('400 hosts fit on one screen of the fleet map, which names the GPU under the pointer', async () => {
    await page.route(/\/admin\/hosts\?/, async (route) => {
      const { items } = await (await route.fetch()).json()
      const model = items.find(
        ({ gpus }: { gpus: { model: string }[] }) => gpus[0]?.model === 'A100 40GB PCIe',
      )
      const many = Array.from({ length: 400 }, (_, index) => ({
        ...model,
        id: `${model.id.slice(0, -3)}${String(index).padStart(3, '0')}`,
        name: `rack-${index}`,
        state: index === 7 ? 'down' : 'up',
      }))
      await route.fulfill({ json: { items: many, next_page_token: '' } })
    })
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.goto(`${service.url}/fleet`)
    const last = main().getByRole('link', { name: 'rack-399' })
    await last.waitFor()
    await main().getByRole('link', { name: 'rack-7, down' }).waitFor()
    const { y, height } = (await last.boundingBox())!
    expect(y + height).toBeLessThanOrEqual(900)
    await last.getByRole('img').first().hover()
    await page.getByText(/^rack-399: GPU /).waitFor()
    await page.mouse.move(0, 0)
    await page.getByText(/^rack-399: GPU /).waitFor({ state: 'detached' })
    expect(await inBothThemes(page, 'fleet-400')).toEqual([])
  })
})
