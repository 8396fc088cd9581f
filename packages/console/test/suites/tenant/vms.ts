import { expect, test } from 'vitest'
import { createVm, inBothThemes, screenshot } from '../../support/browser.ts'
import type { Tenant } from './tenant.ts'

/** Tests of existing VMs. */
export function vmTests(tenant: Tenant): void {
  const { main, dialog, summary, result, open, openVm } = tenant

  test('the page of a VM shows its serial log', async () => {
    const { page } = tenant
    await openVm('talkative', 'a100.1x')
    const log = page.getByRole('log', { name: 'Serial log' })
    await log
      .getByText(/A100 40GB PCIe ready/)
      .first()
      .waitFor()
    // The height is a multiple of the line height.
    const [height, line] = await log.evaluate((element) => [
      element.clientHeight,
      Number.parseFloat(getComputedStyle(element).lineHeight),
    ])
    expect(height! % line!).toBe(0)
  })

  test('a VM is reset, stopped and deleted, and disabled actions say why', async () => {
    const { page } = tenant
    await openVm('short-lived', 'a40.1x')
    await page.getByRole('button', { name: 'Start' }).hover()
    await page.getByText('The VM must be stopped. It is running.').waitFor()
    await page.getByRole('button', { name: 'Reset' }).click()
    await dialog().getByRole('button', { name: 'Reset VM' }).click()
    await result('Reset short-lived').waitFor()
    await main().getByText('running', { exact: true }).first().waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await dialog().getByRole('button', { name: 'Stop VM' }).click()
    await result('Stopped short-lived').waitFor()
    await main().getByText('stopped', { exact: true }).first().waitFor()
    // The reason is visible without hovering over the buttons.
    await main().getByText('To stop or reset the VM, it must be running or crashed.').waitFor()
    await page.getByRole('button', { name: 'Delete VM' }).click()
    const confirm = dialog().getByRole('button', { name: 'Delete VM' })
    expect(await confirm.getAttribute('aria-disabled')).toBe('true')
    await dialog().getByLabel('Type short-lived to confirm').fill('short-lived')
    await confirm.click()
    await result('Deleted short-lived').waitFor()
    await main().getByText('no longer exists').waitFor()
    // The page of a deleted VM still shows its data.
    await page.reload()
    await page.getByRole('heading', { level: 1, name: 'short-lived' }).waitFor()
    await main().locator('dl > div', { hasText: 'Type' }).getByText('a40.1x').waitFor()
    await main()
      .locator('dl > div', { hasText: 'Total cost' })
      .getByText(/^\d+\.\d\d USD/)
      .waitFor()
    await main().getByRole('link', { name: 'Create a similar VM' }).click()
    await summary().getByText('a40.1x in us-east1-a').waitFor()
  })

  test('several VMs are filtered, stopped and deleted together', async () => {
    const { service, project_id } = tenant
    const names = ['batch-1', 'batch-2', 'train-7']
    await Promise.all(names.map((name) => createVm(service, name, 'a40.1x', project_id)))
    await open('/vms')
    const row = (name: string) => main().getByRole('row', { name: new RegExp(name) })
    await row('train-7').waitFor()
    await main().getByLabel('Filter by name, address or ID').fill('batch-')
    await row('train-7').waitFor({ state: 'detached' })
    await main().getByText('2 of 3 VMs: 2 running for 1.80 USD/h').waitFor()
    const act = async (verb: string) => {
      await main().getByLabel('Select all').check()
      await main().getByText('2 VMs selected').waitFor()
      await main().getByRole('button', { name: verb }).click()
      await dialog()
        .getByText(/^VMs: batch-\d, batch-\d$/)
        .waitFor()
      if (verb === 'Delete') await dialog().getByLabel('Type 2 to confirm').fill('2')
      await dialog()
        .getByRole('button', { name: `${verb} 2 VMs` })
        .click()
    }
    await act('Stop')
    await result('Stopped 2 VMs').waitFor()
    for (const name of ['batch-1', 'batch-2']) await row(name).getByText('stopped').waitFor()
    await act('Delete')
    await result('Deleted 2 VMs').waitFor()
    await main().getByText('No VMs match the filters.').waitFor()
    await row('train-7').waitFor({ state: 'detached' })
    await main().getByRole('button', { name: 'Clear filter' }).click()
    await row('train-7').waitFor()
  })

  test('a failed stop is shown until a retry succeeds', async () => {
    const { page } = tenant
    await openVm('stubborn', 'a40.1x')
    const unavailable = {
      status: 503,
      headers: { 'retry-after': '0' },
      json: { code: 'unavailable', message: 'The database is temporarily unavailable.' },
    }
    await page.route(/\/vms\/[^/]+$/, (route) =>
      route.request().method() === 'PATCH' ? route.fulfill(unavailable) : route.fallback(),
    )
    await page.getByRole('button', { name: 'Stop' }).click()
    await dialog().getByRole('button', { name: 'Stop VM' }).click()
    await result('Could not stop stubborn').waitFor()
    await result('Try again in a moment.').waitFor()
    expect(await result(/automatically/).count()).toBe(0)
    const retry = page.getByRole('button', { name: 'Try again', includeHidden: true })
    await retry.click()
    await retry.and(page.locator(':not([aria-busy])')).waitFor()
    await result('Could not stop stubborn').waitFor()
    await page.unrouteAll()
    await retry.click()
    await result('Stopped stubborn').waitFor()
    await result('Could not stop stubborn').waitFor({ state: 'detached' })
  })

  test('stopping several VMs shows lost data and saved costs, the progress and what failed', async () => {
    const { service, page, project_id } = tenant
    const [kept, other] = await Promise.all([
      createVm(service, 'no-scratch', 'l40s-48gb.1x', project_id),
      createVm(service, 'with-scratch', 'a100.1x', project_id),
    ])
    await open('/vms')
    const row = (name: string) => main().getByRole('row', { name: new RegExp(name) })
    await row('with-scratch').waitFor()
    await main().getByLabel('Select all').check()
    await main().getByRole('button', { name: 'Start', disabled: true }).waitFor()
    await main().getByRole('button', { name: 'Stop' }).click()
    await dialog()
      .getByText(`this saves ${(kept.usd_per_hour! + other.usd_per_hour!).toFixed(2)} USD/h`)
      .waitFor()
    await dialog().getByText('Local scratch data will be lost on 1 VM: with-scratch.').waitFor()
    const firstVmUrl = `**/vms/${kept.id}`
    const conflict = { status: 409, json: { code: 'conflict', message: 'Another operation is in progress.' } }
    await page.route(firstVmUrl, (route) =>
      route.request().method() === 'PATCH' ? route.fulfill(conflict) : route.fallback(),
    )
    await dialog().getByRole('button', { name: 'Stop 2 VMs' }).click()
    await dialog().getByText('Stopped 1 of 2 VMs').waitFor()
    await dialog().getByText('no-scratch: Another operation is in progress.').waitFor()
    expect(await inBothThemes(page, 'bulk-failed', '[data-modal]')).toEqual([])
    await page.unroute(firstVmUrl)
    await dialog().getByRole('button', { name: 'Try again with no-scratch' }).click()
    await result('Stopped no-scratch').waitFor()
    for (const name of ['no-scratch', 'with-scratch']) await row(name).getByText('stopped').waitFor()
  })

  test('several VMs are started, labeled and protected together, and each row has a menu', async () => {
    const { service, page, project_id } = tenant
    for (const name of ['batch-1', 'batch-2']) {
      const { id } = await createVm(service, name, 'a40.1x', project_id)
      const { operation } = await service.asOwner.vmUpdate({ project_id, vm_id: id }, { action: 'STOP' })
      await service.asOwner.wait({ project_id }, operation)
    }
    await open('/vms')
    const act = async (button: string, fill: () => Promise<unknown>, submit: string) => {
      await main().getByLabel('Select all').check()
      await main().getByRole('button', { name: button, exact: true }).click()
      await fill()
      await dialog().getByRole('button', { name: submit }).click()
    }
    await act(
      'Start',
      () => dialog().getByText('The VMs will use GPUs again and cost 1.80 USD/h.').waitFor(),
      'Start 2',
    )
    await result('Started 2 VMs').waitFor()
    await act('Edit labels', () => dialog().getByLabel('Add or change').fill('team=ml'), 'Change 2')
    await result('Labeled 2 VMs').waitFor()
    await act(
      'Change protection',
      () => dialog().getByLabel('Deletion protection').selectOption('On'),
      'Change 2',
    )
    await result('Changed protection of 2 VMs').waitFor()
    for (const { labels, deletion_protection, state } of await service.asOwner.collect('vmList', {
      project_id,
    }))
      expect({ labels, deletion_protection, state }).toEqual({
        labels: { team: 'ml' },
        deletion_protection: true,
        state: 'STATE_RUNNING',
      })
    await main().getByRole('button', { name: 'Actions for batch-2' }).click()
    const menu = page.getByRole('menu', { name: 'Actions for batch-2' })
    await menu.getByRole('menuitem', { name: 'Open' }).waitFor()
    expect(await menu.getByRole('menuitem', { name: 'Delete' }).count()).toBe(0)
    await screenshot(page, 'vm-row-menu')
    await menu.getByRole('menuitem', { name: 'Stop' }).click()
    await dialog().getByRole('button', { name: 'Stop batch-2' }).click()
    await result('Stopped batch-2').waitFor()
  })

  test('the console of a VM shows what is typed', async () => {
    const { page } = tenant
    await openVm('typed', 'a40.1x')
    await open(`/vms/${new URL(page.url()).pathname.split('/').at(-1)}/console`)
    await main().getByText('Connected. Your input is sent to the VM.').waitFor()
    await main().getByRole('textbox', { name: 'Terminal input' }).focus()
    await page.keyboard.type('nvidia-smi')
    await page.keyboard.press('Enter')
    await main().locator('.xterm-rows').getByText('nvidia-smi').first().waitFor()
    expect(await inBothThemes(page, 'vm-console')).toEqual([])
  })

  test('a crashed VM says that it is still billed, and can be stopped', async () => {
    const { service, page } = tenant
    await openVm('broken', 'a40.1x')
    const id = new URL(page.url()).pathname.split('/').at(-1)
    await service.sql(`UPDATE vms SET state = 'STATE_CRASHED' WHERE id = $1`, [id])
    await page.reload()
    const notes = main().getByRole('region', { name: 'Alerts' })
    await notes.getByText('broken crashed and is still billed.').waitFor()
    await notes.getByText('0.90 USD/h').waitFor()
    await notes.getByRole('button', { name: 'Reset broken' }).waitFor()
    await notes.getByRole('button', { name: 'Stop broken' }).click()
    await dialog().getByText('this saves 0.90 USD/h').waitFor()
    await dialog().getByRole('button', { name: 'Stop VM' }).click()
    await result('Stopped broken').waitFor()
    await notes.waitFor({ state: 'detached' })
  })

  test('the expiry of a VM can be set to a custom time and removed', async () => {
    await openVm('timed', 'a40.1x')
    const setExpiry = () => main().getByRole('button', { name: 'Set expiry' }).click()
    await setExpiry()
    await dialog().getByText('The VM does not expire.').waitFor()
    await dialog().getByLabel('Expires in').selectOption('Custom')
    await dialog().getByLabel('Hours').fill('0.01')
    await dialog().getByText('Enter a number of hours from 0.08 (5 minutes) to 720.').first().waitFor()
    await dialog().getByLabel('Hours').fill('1.5')
    await dialog()
      .getByText(/^Until /)
      .waitFor()
    await dialog().getByLabel('On expiry').selectOption('delete')
    await dialog().getByRole('button', { name: 'Set expiry' }).click()
    await result('timed expires in 1.5 h').waitFor()
    await setExpiry()
    await dialog()
      .getByText(/^Current expiry: .* \(delete the VM\)$/)
      .waitFor()
    await dialog().getByLabel('Expires in').selectOption('Never')
    await dialog().getByText('Show as CLI or curl').click()
    await dialog().getByText('slipway vm extend timed --never', { exact: true }).waitFor()
    await dialog().getByRole('button', { name: 'Set expiry' }).click()
    await result('timed no longer expires').waitFor()
    await setExpiry()
    await dialog().getByText('The VM does not expire.').waitFor()
    await dialog().getByRole('button', { name: 'Cancel' }).click()
  })
}
