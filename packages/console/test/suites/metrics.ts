import type { Vm } from '@slipway/sdk'
import type { Page } from 'playwright-core'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import {
  createVm,
  inBothThemes,
  isBrowserMissing,
  modalOf,
  onNarrowScreen,
  screenshot,
  useConsole,
  visit,
} from '../support/browser.ts'
import type { Service } from '../support/service.ts'

/** Adds samples of a busy GPU and evenly growing counters for the last hour, except 20 minutes in the middle. */
const addSamples = (service: Service, vm: Vm) =>
  service.sql(
    `INSERT INTO vm_samples (vm_id, at, data)
     SELECT $1, date_trunc('minute', slipway_now()) - n * interval '1 minute',
            json_build_object('h', json_build_array((60 - n) * 120, 32e9, (60 - n) * 60e6, 0, (60 - n) * 6e9, 0, 1),
                              'g', json_build_array(json_build_array(100, 41971, 101800, 64, 691.72, 1425, 0, 0)))
     FROM generate_series(1, 58) n WHERE n NOT BETWEEN 20 AND 39
     ON CONFLICT (vm_id, at) DO UPDATE SET data = excluded.data`,
    [vm.id],
  )

describe.skipIf(isBrowserMissing)('metrics in the console', () => {
  const scene = useConsole('Metrics')
  let service: Service
  let page: Page
  let vm: Vm
  let other: Vm
  beforeAll(async () => {
    service = scene.service
    vm = await createVm(service, 'busy', 'a100.1x', service.project_id)
    other = await createVm(service, 'other', 'a40.1x', service.project_id)
    // The simulated guests report no further samples.
    await service.sql(`UPDATE simulated_vms SET metrics = '{"silent": true}'`)
    await addSamples(service, vm)
  })
  beforeEach(() => {
    ;({ page } = scene)
  })

  const main = () => page.getByRole('main')
  const open = (path: string) => visit(page, `/projects/${service.project_id}${path}`)
  const chart = (words: string | RegExp) => main().getByRole('img', { name: words })

  test('the Metrics tab of a VM has charts that fit all widths and pass axe in both themes', async () => {
    await open(`/vms/${vm.id}`)
    await main().getByRole('link', { name: 'Metrics' }).click()
    await chart('GPU power over time. GPU 0: latest 691.7 W, highest 691.7 W').waitFor()
    await chart('CPU over time. used: latest 2 cores, highest 2 cores').waitFor()
    await chart(/^Network over time. received: latest 100 MB\/s/).waitFor()
    await chart(/^Disk over time. read: latest 1 MB\/s/).waitFor()
    expect(await main().locator('figure canvas').count()).toBe(8)
    const findings = [...(await inBothThemes(page, 'metrics')), ...(await onNarrowScreen(page, 'metrics'))]
    await page.setViewportSize({ width: 820, height: 1100 })
    await screenshot(page, 'metrics-tablet')
    await page.setViewportSize({ width: 1280, height: 860 })
    expect(findings).toEqual([])
  })

  test('metrics can be shown as tables, where a gap has no values, and for longer ranges', async () => {
    await open(`/vms/${vm.id}/metrics`)
    await main().getByLabel('View').selectOption('Tables')
    const power = main().getByRole('table', { name: 'GPU power' })
    await power.getByText('691.7 W').first().waitFor()
    // Twenty minutes without a sample; the first minutes of the hour can be missing as well.
    const gaps = await power.getByRole('row').filter({ hasText: 'no value' }).count()
    expect(gaps).toBeGreaterThanOrEqual(20)
    expect(gaps).toBeLessThanOrEqual(24)
    expect(await inBothThemes(page, 'metrics-tables')).toEqual([])
    for (const range of ['Last 24 hours', 'Last 15 days']) {
      await main().getByLabel('Time range').selectOption(range)
      await power.getByText('691.7 W').first().waitFor()
    }
    expect(page.url()).toMatch(/range=15d&view=table|view=table&range=15d/)
  })

  test('each request for GPU usage covers all rows of the VM list, and gaps are visible', async () => {
    const requests: string[] = []
    page.on('request', (request) => request.url().includes('/metrics?') && requests.push(request.url()))
    await open('/vms')
    const row = main().getByRole('row', { name: /busy/ })
    await row.getByText('100%').waitFor()
    expect(await row.locator('polyline').count()).toBe(2)
    // The page reads everything again when its event stream connects.
    const counts = requests.map((url) => new URL(url).searchParams.get('vm_ids')!.split(',').length)
    expect(new Set(counts)).toEqual(new Set([2]))
    await screenshot(page, 'vms-gpu-use')
  })

  test('a VM with a faulty GPU shows its health, the reason, and the action that helps', async () => {
    const at = new Date().toISOString()
    const message = 'The guest reports that GPU 0 reported error XID 48. Reset the VM.'
    const reason = { code: 'xid_48', gpu_index: 0, source: 'guest', message, action: 'RESET', at }
    const setHealth = (health: object | null) =>
      service.sql('UPDATE vms SET health = $2::jsonb WHERE id = $1', [
        vm.id,
        health && JSON.stringify(health),
      ])
    await setHealth({ status: 'degraded', since: at, reasons: [reason] })
    onTestFinished(async () => {
      await setHealth(null)
    })
    await open('/vms')
    await page.reload()
    const badge = main().getByRole('row', { name: /busy/ }).getByTitle(message)
    expect(await badge.textContent()).toContain('degraded')
    await main().getByRole('link', { name: 'busy' }).click()
    const health = main().getByRole('region', { name: 'GPU health' })
    await health.getByText(message).waitFor()
    expect(await inBothThemes(page, 'gpu-health')).toEqual([])
    await health.getByRole('button', { name: 'Reset busy because of GPU 0' }).click()
    await modalOf(page).getByText(/busy/).first().waitFor()
    await page.keyboard.press('Escape')
    await modalOf(page).waitFor({ state: 'detached' })
  })

  test('the overview lists unused resources and their costs', async () => {
    const { project_id } = service
    // A sample from before the guests fell silent would show a busy VM.
    await service.sql('DELETE FROM vm_samples WHERE vm_id = $1', [other.id])
    await open('')
    await main().getByRole('region', { name: 'Latest activity' }).waitFor()
    expect(await main().getByRole('region', { name: 'Suggestions' }).count()).toBe(0)
    const disk = { name: 'forgotten', size: '500GiB', location: 'us-east1-a' }
    const { operation } = await service.asOwner.diskCreate({ project_id }, disk)
    await service.asOwner.wait({ project_id }, operation)
    await service.sql(`UPDATE disks SET created_at = created_at - interval '2 days' WHERE project_id = $1`, [
      project_id,
    ])
    await service.sql(
      `INSERT INTO vm_sample_chunks (vm_id, hour, step, data, gpu_values, gpu_peak)
       SELECT $1, date_trunc('hour', slipway_now()) - n * interval '1 hour', 300, '{"t": [], "h": [], "g": []}', 60, 1
       FROM generate_series(1, 24) n`,
      [other.id],
    )
    // No event reports that the disk is old now, and that the VM was idle.
    await page.reload()
    const suggestions = main().getByRole('region', { name: 'Suggestions' })
    await suggestions.getByText('forgotten (500 GiB) is not attached to a VM.').waitFor()
    await suggestions.getByText(/^Unused resources cost \d+\.\d\d USD per month\.$/).waitFor()
    await suggestions.getByText(/^The GPUs of other were below 5% for 24 hours/).waitFor()
    for (const name of ['other', 'forgotten'])
      expect(await suggestions.getByRole('listitem').filter({ hasText: name }).textContent()).toMatch(
        /\d\.\d\d USD per month$/,
      )
    const findings = [
      ...(await inBothThemes(page, 'suggestions')),
      ...(await onNarrowScreen(page, 'suggestions')),
    ]
    expect(findings).toEqual([])
    await suggestions.getByRole('link', { name: 'forgotten' }).click()
    await main()
      .getByRole('row', { name: /forgotten/ })
      .waitFor()
  })
})
