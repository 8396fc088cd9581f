import { expect, onTestFinished, test } from 'vitest'
import { createVm, inBothThemes, openTab, result, screenshot, signIn, visit } from '../../support/browser.ts'
import { removeVms } from '../../support/service.ts'
import type { Operator } from './operator.ts'

/** Tests of hosts, GPUs and capacity. */
export function fleetTests(operator: Operator): void {
  const { main, dialog, leaveHost, openTabOf } = operator

  test('the fleet map shows which VM and tenant use a GPU', async () => {
    const { service, page } = operator
    const vm = await createVm(service, 'holder', 'a100-80gb.4x')
    const band = main().getByRole('region', { name: vm.location })
    const cells = band.getByRole('img', { name: 'claimed, holder, Operator / default' })
    await cells.first().waitFor()
    expect(await cells.count()).toBe(4)
    // Claimed GPUs are grey.
    const [red, green, blue] = await cells.first().evaluate(backgroundOf)
    expect(Math.max(red!, green!, blue!) - Math.min(red!, green!, blue!)).toBeLessThan(30)
    await cells.first().hover()
    await page.getByText('Operator / default', { exact: true }).waitFor()
    await screenshot(page, 'fleet-hover-light')
    await band.getByText('largest available type: a100-80gb.8x').waitFor()
    // Locations are in configuration order.
    expect(await main().getByRole('heading', { level: 2 }).allTextContents()).toEqual([
      'us-east1-a',
      'eu-north1-a',
    ])
  })

  test('the fleet map can show only hosts with enough free GPUs, those with the most first', async () => {
    const { service, page } = operator
    await createVm(service, 'filler', 'l40s-48gb.4x')
    onTestFinished(() => removeVms(service))
    const tiles = () =>
      main()
        .getByRole('link')
        .filter({ hasText: /^l40s-48gb/ })
    await visit(page, '/fleet?family=l40s-48gb&free=8')
    await expect.poll(() => tiles().count()).toBe(1)
    await main().getByLabel('Free GPUs').selectOption('4')
    await main().getByLabel('Sort hosts').selectOption('free')
    await expect.poll(() => tiles().count()).toBe(2)
    await tiles()
      .last()
      .getByRole('img', { name: /filler/ })
      .first()
      .waitFor()
    await main().getByLabel('Host state').selectOption('down')
    await main().getByText('No hosts match the filters.').waitFor()
    await openTabOf('Capacity')
    const sizes = main().getByRole('table', { name: 'Hosts by free GPUs' })
    await sizes.getByRole('row', { name: /^l40s-48gb us-east1-a 8 2 1 2 2 2$/ }).waitFor()
    expect(await page.title()).toBe('Fleet Capacity · Slipway')
  })

  test('a draining host is drained when its last VM is deleted', async () => {
    const { service, page } = operator
    const vm = await createVm(service, 'train-7', 'l40s-48gb.4x')
    await main()
      .getByRole('region', { name: vm.location })
      .getByRole('link')
      .filter({ has: page.getByRole('img', { name: /train-7/ }) })
      .click()
    const drain = async () => {
      await page.getByRole('button', { name: 'Drain', exact: true }).click()
      await dialog().getByRole('button', { name: 'Drain host' }).click()
      await main().getByText('Draining: 1 of 1 VM left, on 4 GPUs').waitFor()
      // The progress counts VMs, not free GPUs.
      const progress = main().getByRole('progressbar', { name: 'VMs removed' })
      expect(await progress.getAttribute('aria-valuenow')).toBe('0')
      await main()
        .getByText(/^draining \d+ (s|min)$/)
        .waitFor()
    }
    await main()
      .getByText(
        'Only a host that is down can be forgotten. The host still has 1 VM. Delete all VMs before you remove it.',
      )
      .waitFor()
    await drain()
    await page.getByRole('button', { name: 'End drain' }).click()
    await result(page, /^Uncordoned /).waitFor()
    await result(page, / is draining$/).waitFor({ state: 'detached' })
    await main().getByText('up', { exact: true }).waitFor()
    await drain()
    await main().getByRole('table', { name: 'GPUs' }).getByText('claimed').first().waitFor()
    await main()
      .getByRole('table', { name: 'VMs' })
      .getByRole('row', { name: /train-7.*running.*Operator \/ default/ })
      .waitFor()
    expect(await inBothThemes(page, 'fleet-draining')).toEqual([])
    await service.tenant.vmDelete({ project_id: vm.project_id, vm_id: vm.id })
    // The GPUs are inspected first, which takes longer on a busy machine.
    await main().getByText('drained', { exact: true }).waitFor({ timeout: 90_000 })
    await main().getByText('No VMs on this host.').waitFor()
    await page.getByRole('button', { name: 'Uncordon' }).click()
    await main().getByText('up', { exact: true }).waitFor()
  }, 240_000)

  test('a quarantined GPU is listed under capacity and can be released', async () => {
    const { service } = operator
    const hosts = await service.operator.collect('adminHostList', {})
    const host = hosts.find(
      ({ location, gpus }) => location === 'us-east1-a' && gpus[0]?.model === 'A100 40GB PCIe',
    )!
    await main().getByRole('link', { name: host.name }).click()
    const row = main().getByRole('table', { name: 'GPUs' }).getByRole('row').nth(1)
    await row.getByRole('button', { name: 'Quarantine' }).click()
    await row.getByText('quarantined').waitFor()
    await leaveHost()
    await openTabOf('Capacity')
    // GPUs of deleted VMs may still be quarantined.
    const list = main().getByRole('table', { name: 'Quarantined and missing GPUs' })
    const entry = list.getByRole('row', { name: new RegExp(`^${host.name} us-east1-a`) })
    await entry.getByRole('button', { name: 'Release' }).click()
    // The GPUs are inspected first, which takes longer on a busy machine.
    await main().getByText('No quarantined or missing GPUs.').waitFor({ timeout: 90_000 })
    const capacity = main().getByRole('table', { name: 'Capacity' })
    await capacity.getByRole('row', { name: /a100 us-east1-a 16( 0)+ 16 a100\.8x 0%/ }).waitFor()
  })

  test('the Health page shows the faults of each day by model, host or XID, and GPUs to check', async () => {
    const { service, page } = operator
    const hosts = await service.operator.collect('adminHostList', {})
    const host = hosts.find(
      ({ location, gpus }) => location === 'us-east1-a' && gpus[0]?.model === 'A40 48GB PCIe',
    )!
    const [gpu] = host.gpus
    // Two faults and an application error today, and a fault five days ago.
    await service.sql(
      `INSERT INTO gpu_faults (gpu_id, xid, source, at)
       SELECT $1, xid, source, slipway_now() - days * interval '1 day' - xid * interval '1 millisecond'
       FROM (VALUES (79, 'host', 5), (79, 'host', 0), (48, 'guest', 0), (31, 'guest', 0)) f (xid, source, days)`,
      [gpu!.id],
    )
    await service.sql('UPDATE gpus SET suspect_since = slipway_now(), fault_count = 4 WHERE id = $1', [
      gpu!.id,
    ])
    onTestFinished(async () => {
      await service.sql('UPDATE gpus SET suspect_since = NULL, fault_count = 0 WHERE id = $1', [gpu!.id])
    })
    await openTabOf('Health')
    const today = new Date().toISOString().slice(0, 10)
    const shownToday = new Date().toLocaleDateString('en-US', {
      month: 'short',
      day: 'numeric',
      timeZone: 'UTC',
    })
    await main()
      .getByRole('img', { name: `GPU faults per day: 3 in 30 days, most on ${today} (2)` })
      .waitFor()
    await main()
      .getByRole('row', { name: `A40 48GB PCIe 2 1 1 ${shownToday}` })
      .waitFor()
    await main()
      .getByRole('table', { name: 'GPUs to check' })
      .getByRole('row', {
        name: new RegExp(
          `^${host.name} us-east1-a ${gpu!.pci_address}.*suspect.*XID 31: invalid memory access by a program, reported by guest`,
        ),
      })
      .waitFor()
    await main().getByLabel('Group by').selectOption('By XID')
    await main()
      .getByRole('row', { name: `XID 79: fell off the PCIe bus 2 0 0 ${shownToday}` })
      .waitFor()
    await main()
      .getByRole('row', { name: `XID 31: invalid memory access by a program 0 0 1 ${shownToday}` })
      .waitFor()
    await main().getByLabel('Time range').selectOption('Last 7 days')
    await main()
      .getByRole('img', { name: /^GPU faults per day: 3 in 7 days/ })
      .waitFor()
    expect(await inBothThemes(page, 'fleet-health')).toEqual([])
    await main().getByLabel('Group by').selectOption('By host')
    await main().getByRole('table', { name: 'Faults by Host' }).getByRole('link', { name: host.name }).click()
    await main().getByRole('table', { name: 'GPUs' }).waitFor()
    await leaveHost()
  })

  test('GPUs of a cordoned host are not counted as free', async () => {
    const { service, page } = operator
    const hosts = await service.operator.collect('adminHostList', {})
    const host = hosts.find(
      ({ location, gpus }) => location === 'us-east1-a' && gpus[0]?.model === 'L40S 48GB PCIe',
    )!
    const band = main().getByRole('region', { name: 'us-east1-a' })
    await service.operator.adminHostUpdate({ host_id: host.id }, { schedulable: false })
    onTestFinished(async () => {
      await service.operator.adminHostUpdate({ host_id: host.id }, { schedulable: true })
    })
    const count = host.gpus.length
    await band.getByText(`${count} of ${2 * count} GPUs free, ${count} unavailable`).waitFor()
    expect(await band.getByRole('img', { name: /^unavailable/ }).count()).toBe(count)
    await screenshot(page, 'fleet-cordoned-light')
    await openTabOf('Capacity')
    const row = main().getByRole('row', {
      name: new RegExp(`^l40s-48gb us-east1-a ${count} ${count} 0 0 0 ${2 * count} `),
    })
    await row.waitFor()
  })

  test('a fleet page shows that the connection is lost, and that another page cannot be opened', async () => {
    const { service, page } = operator
    const { page: tab } = await openTab(page.context())
    await tab.goto(`${service.url}/fleet`)
    const mark = (word: string) => tab.getByRole('banner').getByText(word, { exact: true })
    await mark('Live').waitFor()
    await tab.route('**/*', (route) => route.abort())
    await mark('Reconnecting').waitFor()
    await tab.getByRole('main').getByText('us-east1-a').first().waitFor()
    await tab.getByRole('link', { name: 'Prices' }).click()
    await tab.getByRole('alert').getByText('Slipway is not responding.').waitFor()
    await screenshot(tab, 'fleet-lost-light')
    await tab.unrouteAll({ behavior: 'ignoreErrors' })
    await tab.getByLabel(/^Price of a100\.1x/).waitFor()
    await tab.getByRole('alert').waitFor({ state: 'detached' })
    await mark('Live').waitFor()
    await tab.close()
  })

  test('a tenant sees announced maintenance and a drain on the VM page and in the alerts menu', async () => {
    const { service, page } = operator
    const vm = await createVm(service, 'guest', 'a100-80gb.4x')
    const hosts = await service.operator.collect('adminHostList', {})
    const host = hosts.find(({ vms }) => vms.some(({ id }) => id === vm.id))!
    await visit(page, `/fleet/hosts/${host.id}`)
    await main().getByRole('button', { name: 'Announce maintenance' }).click()
    await dialog().getByLabel('Start (your local time)').fill('2099-12-01T06:00')
    await dialog().getByLabel('Note for tenants').fill('New power supplies')
    await dialog().getByText('Show as CLI or curl').click()
    await dialog()
      .getByText(
        new RegExp(`^slipway admin host maintenance ${host.id} --at 2099-1.* --note 'New power supplies'`),
      )
      .waitFor()
    await dialog().getByRole('button', { name: 'Announce maintenance' }).click()
    await main()
      .getByText(/^Maintenance at .*: New power supplies$/)
      .waitFor()
    await main().getByRole('button', { name: 'Add note' }).click()
    await dialog().getByLabel('Note').fill('The fan is loud')
    await dialog().getByRole('button', { name: 'Save note' }).click()
    await main().getByText('The fan is loud').waitFor()
    await main()
      .getByText(/ by \S+@\S+$/)
      .waitFor()
    expect(await inBothThemes(page, 'host-maintenance')).toEqual([])
    const tenant = await openTab(await operator.browser.newContext())
    await signIn(tenant.page, service)
    await visit(tenant.page, `/projects/${vm.project_id}/vms/${vm.id}`)
    const notes = tenant.page.getByRole('main').getByRole('region', { name: 'Alerts' })
    await notes
      .getByText(/is scheduled for maintenance at .* \(New power supplies\)\. Stop and start it/)
      .waitFor()
    await screenshot(tenant.page, 'vm-maintenance-light')
    await tenant.page.getByRole('button', { name: /^Alerts: [1-9]/ }).click()
    await tenant.page
      .getByRole('menuitem', { name: /^The host of guest in .* is scheduled for maintenance/ })
      .waitFor()
    await tenant.page.keyboard.press('Escape')
    await main().getByRole('button', { name: 'Cancel maintenance' }).click()
    await main().getByText('No maintenance is announced.').waitFor()
    await service.operator.adminHostDrain({ host_id: host.id })
    await tenant.page.getByText('Host will be taken out of service').waitFor()
    await notes.getByText(/will be taken out of service\. guest keeps running/).waitFor()
    await tenant.page.context().close()
    await service.operator.adminHostUpdate({ host_id: host.id }, { schedulable: true, note: '' })
  })

  test('a host is registered, and the audit log names the operator', async () => {
    const { service, page } = operator
    let showLocations = () => {}
    const locationsReleased = new Promise<void>((resolve) => (showLocations = resolve))
    await page.route('**/admin/locations', (route) => locationsReleased.then(() => route.continue()))
    // After a reload, the locations are not loaded yet.
    await page.goto(`${service.url}/fleet`)
    await main().getByRole('button', { name: 'Register host' }).first().click()
    await dialog().getByLabel('Name').fill('rack4-1')
    const register = dialog().getByRole('button', { name: 'Register host' })
    expect(await register.isEnabled()).toBe(false)
    showLocations()
    await register.click()
    await main()
      .getByRole('link', { name: /rack4-1/ })
      .waitFor()
    await openTabOf('Audit log')
    await main()
      .getByRole('row', { name: /Host created.*rack4-1.*operator@slipway\.local/ })
      .getByRole('button', { name: 'Host created' })
      .click()
    const details = main().getByRole('tabpanel', { name: 'Host created' })
    await details.getByText('"name": "rack4-1"').waitFor()
    expect(await inBothThemes(page, 'fleet-audit-details')).toEqual([])
    const hosts = await service.operator.collect('adminHostList', {})
    const host = hosts.find(({ name }) => name === 'rack4-1')!
    const search = main().getByLabel('Search by resource name or ID')
    await search.fill('no-such-rack')
    await main().getByText('No resource has this name.').waitFor()
    await search.fill('rack4-1')
    await main().getByRole('list', { name: 'Resources' }).getByRole('button', { name: 'rack4-1' }).click()
    await details.waitFor()
    expect(await search.inputValue()).toBe(host.id)
    expect(await main().getByRole('button', { name: 'Host created' }).count()).toBe(1)
  })
}

/** Runs in the page. Returns the red, green and blue parts of an element's background. */
function backgroundOf(element: Element): number[] {
  const canvas = document.createElement('canvas').getContext('2d')!
  canvas.fillStyle = getComputedStyle(element).backgroundColor
  canvas.fillRect(0, 0, 1, 1)
  return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)]
}
