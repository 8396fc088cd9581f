import { readFileSync } from 'node:fs'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import type { Locator, Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  createVm,
  inBothThemes,
  isBrowserMissing,
  modalOf,
  onNarrowScreen,
  pressChord,
  result as resultOn,
  screenshot,
  takeProject,
  useConsole,
  visit,
  vmRequest,
} from '../support/browser.ts'
import type { Service } from '../support/service.ts'

describe.skipIf(isBrowserMissing)('a tenant in the console', () => {
  const scene = useConsole('Tenant')
  let service: Service
  let page: Page
  let project_id: string
  beforeEach(async () => {
    ;({ service, page } = scene)
    project_id = takeProject(service)
  })

  const main = () => page.getByRole('main')
  const dialog = () => modalOf(page)
  const summary = () => page.getByRole('complementary', { name: 'Summary' })
  const result = (words: string | RegExp) => resultOn(page, words)
  const open = (path: string) => visit(page, `/projects/${project_id}${path}`)
  const openVm = async (name: string, type: string) => {
    const vm = await createVm(service, name, type, project_id)
    await open(`/vms/${vm.id}`)
    await page.getByRole('heading', { level: 1, name }).waitFor()
  }

  test('the keyboard shortcut creates a VM, whose page shows the steps of the creation', async () => {
    // The steps are visible only while the creation runs, so let it fail until the test has seen them.
    await service.sql(
      `INSERT INTO simulated_faults (method, kind, delay_ms, remaining) VALUES ('ensureVm', 'fail', 0, 1000)`,
    )
    await open('')
    await page.getByRole('navigation', { name: 'Main' }).waitFor()
    await page.keyboard.press('c')
    await page.getByRole('heading', { level: 1, name: 'Create VM' }).waitFor()
    const create = summary().getByRole('button', { name: 'Create VM' })
    expect(await create.getAttribute('aria-disabled')).toBe('true')
    await page.getByRole('radio', { name: /^a100\.2x/ }).check({ force: true })
    await summary().getByText('2.90 USD').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('train-7')
    await page.getByLabel('SSH public key').fill('ssh-ed25519 AAAA')
    await page.getByText(/The key is not a valid public key/).waitFor()
    await summary().getByText('Correct the SSH public key').first().waitFor()
    await page.getByLabel('SSH public key').fill(sshKey)
    await page.getByText('ssh-ed25519, 256 bits, ada@laptop').waitFor()
    await create.click()
    await page.getByRole('heading', { level: 1, name: 'train-7' }).waitFor()
    await page.getByRole('region', { name: 'Create VM' }).getByText('Start the VM on its host').waitFor()
    await service.sql('DELETE FROM simulated_faults')
    // The toast disappears after some seconds, so check it first.
    await result('train-7 is running').waitFor()
    await main().getByText('running', { exact: true }).first().waitFor()
    await main().getByText('This simulated VM has no SSH.').waitFor()
  })

  test('a subnet and a project with VMs cannot be deleted, and say why', async () => {
    await service.asOwner.vmCreate({ project_id }, vmRequest('lodger', 'a40.1x'))
    await open('/network/networks')
    const subnet = main().getByRole('row', { name: /^default-subnet-us-east1-a/ })
    await subnet.getByRole('button', { name: /^Delete/, disabled: true }).waitFor()
    await subnet.getByText('In use by 1 VM').waitFor()
    await main().getByRole('region', { name: 'default' }).getByText('Delete its subnets first.').waitFor()
    await open('/settings/project')
    await main().getByRole('button', { name: 'Delete project', disabled: true }).hover()
    await page.getByText('The project still has 1 VM. Delete it first.').waitFor()
  })

  test('an address is reserved, assigned, unassigned and deleted', async () => {
    await createVm(service, 'web', 'a40.1x', project_id)
    await open('/network/addresses')
    await main().getByText('No reserved addresses yet').waitFor()
    await main().getByRole('button', { name: 'Reserve address' }).first().click()
    await dialog().getByLabel('Name').fill('gateway')
    await dialog().getByRole('button', { name: 'Reserve address' }).click()
    await result('Reserved address gateway').waitFor()
    const row = main().getByRole('row', { name: /^gateway/ })
    await row.getByRole('button', { name: 'Assign gateway' }).click()
    await dialog().getByRole('button', { name: 'Assign address' }).click()
    await result('Assigned gateway to web').waitFor()
    await row.getByRole('link', { name: 'web' }).waitFor()
    await screenshot(page, 'addresses')
    await row.getByRole('button', { name: 'Unassign gateway' }).click()
    await dialog().getByRole('button', { name: 'Unassign address' }).click()
    await result('Unassigned gateway').waitFor()
    await row.getByRole('button', { name: 'Delete gateway' }).click()
    await dialog().getByRole('button', { name: 'Delete address' }).click()
    await main().getByText('No reserved addresses yet').waitFor()
  })

  test('the console of a VM sends what is typed, and finds and copies text', async () => {
    await openVm('typist', 'a40.1x')
    const loaded = () =>
      page.evaluate(() =>
        performance.getEntriesByType('resource').some(({ name }) => /xterm|terminal/.test(name)),
      )
    expect(await loaded()).toBe(false)
    await page.getByRole('navigation', { name: 'VM' }).getByRole('link', { name: 'Console' }).click()
    await main().getByText('Connected. What you type goes to the VM.').waitFor()
    const terminal = main().locator('.xterm')
    await terminal.getByText('typist login:').first().waitFor()
    await page.keyboard.type('hello')
    await page.keyboard.press('Enter')
    await terminal.getByText('simulated: hello').first().waitFor()
    await main().getByLabel('Find').fill('simulated: hello')
    await main().getByRole('button', { name: 'Find next' }).click()
    await main().getByRole('button', { name: 'Copy selection' }).click()
    await result('Copied the selection').waitFor()
    expect([...(await inBothThemes(page, 'console')), ...(await onNarrowScreen(page, 'console'))]).toEqual([])
  })

  test('the page of a VM shows its serial log', async () => {
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

  test('the first disk is created in the dialog', async () => {
    await open('/disks')
    await main().getByText('slipway disk create datasets').waitFor()
    await main().getByRole('button', { name: 'Create disk' }).first().click()
    await dialog().getByLabel('Name').fill('datasets')
    await dialog().getByRole('button', { name: 'Create disk' }).click()
    await main()
      .getByRole('row', { name: /datasets/ })
      .getByText('available')
      .waitFor()
  })

  test('a disk is attached on the page of a VM', async () => {
    const disk = { name: 'datasets', size: '10GiB', location: 'us-east1-a' }
    const { operation } = await service.asOwner.diskCreate({ project_id }, disk)
    await service.asOwner.wait({ project_id }, operation)
    await createVm(service, 'train-7', 'a40.1x', project_id)
    await open('/vms')
    await main().getByRole('link', { name: 'train-7' }).click()
    await page.getByRole('button', { name: 'Attach disk' }).click()
    await dialog().getByRole('button', { name: 'Attach disk' }).click()
    await result('Attached datasets to train-7').waitFor()
    await dialog().getByText('/mnt/datasets').first().waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('table', { name: 'Disks' }).getByText('datasets').waitFor()
    await open('/operations')
    await page.getByRole('table', { name: 'Operations' }).getByText('Attach disks').waitFor()
  })

  test('the editor previews a firewall rule, and the tester names the rule that decides', async () => {
    await createVm(service, 'train-7', 'a40.1x', project_id)
    await open('/network/firewall')
    await main().getByText('Allow tcp 22 from anywhere to every VM').waitFor()
    await page.getByRole('button', { name: 'Create rule' }).click()
    await dialog().getByLabel('Name', { exact: true }).fill('allow-jupyter')
    const create = dialog().getByRole('button', { name: 'Create rule' })
    const [from, to] = ['Source', 'Destination'].map((side) => dialog().getByLabel(`${side}: add`)) as [
      Locator,
      Locator,
    ]
    // No port is open by default.
    expect(await create.isEnabled()).toBe(false)
    await from.fill('203.0.113.7/24')
    await dialog().getByText('Enter an IP address, a CIDR block, or the name').waitFor()
    await from.fill('anywhere')
    await to.fill('every VM')
    await to.press('Enter')
    await dialog().getByText('This opens every port to the whole internet.').waitFor()
    await dialog().getByLabel('Destination ports').fill('8888')
    await dialog().getByText('Allow tcp 8888 from anywhere to every VM.').waitFor()
    await dialog().getByText('This opens port 8888 to the whole internet.').waitFor()
    // The text in the source field is used although it was not added to the list.
    await create.click()
    await result('Rule allow-jupyter is active').waitFor()
    await main().getByText('Allow tcp 8888 from anywhere to every VM').waitFor()
    const tester = page.getByRole('form', { name: 'Rule tester' })
    await tester.getByLabel('Destination', { exact: true }).fill('train-7')
    await tester.getByLabel('Destination port').fill('8888')
    await tester.getByRole('button', { name: 'Test' }).click()
    await tester.getByText('Allowed by allow-jupyter.').waitFor()
    await tester.getByLabel('Destination port').fill('9999')
    await tester.getByRole('button', { name: 'Test' }).click()
    await tester.getByText('Denied because no rule allows it.').waitFor()
  })

  test('keyboard shortcuts open pages, search and help', async () => {
    await createVm(service, 'hard-to-find', 'a40.1x', project_id)
    await open('')
    await page.getByRole('navigation', { name: 'Main' }).waitFor()
    await pressChord(page, 'g', 'u')
    await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor()
    await page.keyboard.press('/')
    await page.getByRole('combobox', { name: /Search/ }).fill('hard-to')
    await page.getByRole('option', { name: /hard-to-find/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'hard-to-find' }).waitFor()
    await dialog().waitFor({ state: 'detached' })
    await page.keyboard.press('?')
    await dialog().getByText('Search VMs, disks and pages').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog', { name: 'Help' }).waitFor({ state: 'detached' })
  })

  test('a VM is reset, stopped and deleted, and disabled actions say why', async () => {
    await openVm('short-lived', 'a40.1x')
    // The reason is visible without hovering over the button.
    await main().getByText('To start the VM, it must be stopped.', { exact: true }).waitFor()
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

  test('several VMs are filtered, stopped and deleted at once', async () => {
    const names = ['batch-1', 'batch-2', 'train-7']
    await Promise.all(names.map((name) => createVm(service, name, 'a40.1x', project_id)))
    await open('/vms')
    const row = (name: string) => main().getByRole('row', { name: new RegExp(name) })
    await row('train-7').waitFor()
    await main().getByLabel('Filter by name, address or ID').fill('batch-')
    await row('train-7').waitFor({ state: 'detached' })
    await main().getByText('2 of 3 VMs: 2 running · 1.80 USD/h').waitFor()
    const act = async (verb: string) => {
      await main().getByLabel('Select all').check()
      await main().getByText('2 VMs selected').waitFor()
      await main().getByRole('button', { name: verb }).click()
      await dialog()
        .getByText(/^batch-\d, batch-\d$/)
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
    await main().getByText('No VMs match the filter.').waitFor()
    await row('train-7').waitFor({ state: 'detached' })
    await main().getByRole('button', { name: 'Clear filter' }).click()
    await row('train-7').waitFor()
  })

  test('a failed stop is shown until it is tried again and succeeds', async () => {
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
    await result('Not stopped: stubborn').waitFor()
    await result('Try again in a moment.').waitFor()
    expect(await result(/automatically/).count()).toBe(0)
    const retry = page.getByRole('button', { name: 'Try again', includeHidden: true })
    await retry.click()
    await retry.and(page.locator(':not([aria-busy])')).waitFor()
    await result('Not stopped: stubborn').waitFor()
    await page.unrouteAll()
    await retry.click()
    await result('Stopped stubborn').waitFor()
    await result('Not stopped: stubborn').waitFor({ state: 'detached' })
  })

  test('stopping several VMs shows what is lost and saved, the progress and what failed', async () => {
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
    const isFirst = `**/vms/${kept.id}`
    const conflict = { status: 409, json: { code: 'conflict', message: 'Another operation is in progress.' } }
    await page.route(isFirst, (route) =>
      route.request().method() === 'PATCH' ? route.fulfill(conflict) : route.fallback(),
    )
    await dialog().getByRole('button', { name: 'Stop 2 VMs' }).click()
    await dialog().getByText('Stopped 1 of 2 VMs').waitFor()
    await dialog().getByText('no-scratch: Another operation is in progress.').waitFor()
    expect(await inBothThemes(page, 'bulk-failed', '[data-modal]')).toEqual([])
    await page.unroute(isFirst)
    await dialog().getByRole('button', { name: 'Try again with no-scratch' }).click()
    await result('Stopped no-scratch').waitFor()
    for (const name of ['no-scratch', 'with-scratch']) await row(name).getByText('stopped').waitFor()
  })

  test('several VMs are started, labeled and protected at once, and each row has a menu', async () => {
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
    await act('Labels', () => dialog().getByLabel('Add or change').fill('team=ml'), 'Change 2')
    await result('Labeled 2 VMs').waitFor()
    await act('Protection', () => dialog().getByLabel('Deletion protection').selectOption('On'), 'Change 2')
    await result('Changed protection of 2 VMs').waitFor()
    for (const { labels, deletion_protection, state } of await service.asOwner.collect('vmList', {
      project_id,
    }))
      expect({ labels, deletion_protection, state }).toEqual({
        labels: { team: 'ml' },
        deletion_protection: true,
        state: 'STATE_RUNNING',
      })
    await main().getByRole('button', { name: 'Actions of batch-2' }).click()
    const menu = page.getByRole('menu', { name: 'Actions of batch-2' })
    await menu.getByRole('menuitem', { name: 'Open' }).waitFor()
    expect(await menu.getByRole('menuitem', { name: 'Delete' }).count()).toBe(0)
    await screenshot(page, 'vm-row-menu')
    await menu.getByRole('menuitem', { name: 'Stop' }).click()
    await dialog().getByRole('button', { name: 'Stop batch-2' }).click()
    await result('Stopped batch-2').waitFor()
  })

  test('a failed creation stays visible with its reason, and can be repeated with the same values', async () => {
    await service.sql(
      `INSERT INTO simulated_faults (method, kind, delay_ms, remaining) VALUES ('ensureVm', 'reject', 0, 1)`,
    )
    const labels = { team: 'ml' }
    const create = async () => {
      const { operation } = await service.asOwner.vmCreate(
        { project_id },
        {
          ...vmRequest('unlucky', 'a40.2x'),
          labels,
          public_ip: 'none',
          startup_script: '#!/bin/sh\necho hi',
        },
      )
      await service.asOwner.wait({ project_id }, operation).catch(() => {})
      return service.asOwner.operationGet({ project_id, operation_id: operation.operation_id })
    }
    let ended = await create()
    // The engine looks for faults now and then: it may not have seen this one yet.
    while (ended.state === 'SUCCEEDED') {
      const gone = await service.asOwner.vmDelete({ project_id, vm_id: ended.metadata.id })
      await service.asOwner.wait({ project_id }, gone.operation)
      ended = await create()
    }
    const { message } = ended.result as { message: string }
    await open('/vms')
    const failed = main().getByRole('region', { name: 'Failed creations' })
    await failed.getByText(message).waitFor()
    expect(await inBothThemes(page, 'vms-failed')).toEqual([])
    expect(await onNarrowScreen(page, 'vms-failed')).toEqual([])
    await page.getByRole('button', { name: 'Alerts: 1' }).click()
    await page.getByRole('menuitem', { name: /^unlucky could not be created/ }).click()
    await main().getByText(message).first().waitFor()
    await page.keyboard.press('/')
    await page.getByRole('combobox', { name: /Search/ }).fill('unlucky')
    await page.getByRole('option', { name: /unlucky.*failed/ }).waitFor()
    await page.keyboard.press('Escape')
    await main().getByRole('link', { name: 'Create again' }).click()
    await summary().getByText('a40.2x in us-east1-a').waitFor()
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('unlucky')
    expect(await page.getByLabel('Labels').inputValue()).toBe('team=ml')
    expect(await page.getByLabel('Public address').isChecked()).toBe(false)
    await summary().getByRole('button', { name: 'Create VM' }).click()
    await result('unlucky is running').waitFor()
    await open('/vms')
    await main()
      .getByRole('row', { name: /unlucky/ })
      .waitFor()
    expect(await failed.count()).toBe(0)
  })

  test('a VM is created in a chosen subnet', async () => {
    const network = await service.asOwner.networkCreate({ project_id }, { name: 'lab', cidr: '10.77.0.0/16' })
    const subnet = await service.asOwner.subnetCreate(
      { project_id },
      { name: 'lab-east', vpc_network_id: network.id, location: 'us-east1-a', cidr: '10.77.1.0/24' },
    )
    await open('/vms/new?type=a40.1x&location=us-east1-a')
    const choice = page.getByLabel('Network', { exact: true })
    expect(await choice.locator('option:checked').textContent()).toMatch(
      /^default-vpc-network \/ default-subnet-us-east1-a/,
    )
    await choice.selectOption('lab / lab-east (10.77.1.0/24)')
    await summary().getByText(`--subnet ${subnet.id}`).waitFor()
    await page.getByLabel('Name', { exact: true }).fill('lab-1')
    await page.getByLabel('SSH public key').fill(sshKey)
    await summary().getByRole('button', { name: 'Create VM' }).click()
    await result('lab-1 is running').waitFor()
    const [vm] = await service.asOwner.collect('vmList', { project_id })
    expect(vm!.network_interfaces[0]!.subnet).toBe(subnet.id)
  })

  test('a crashed VM says that it is still billed, and can be stopped', async () => {
    await openVm('broken', 'a40.1x')
    const id = new URL(page.url()).pathname.split('/').at(-1)
    await service.sql(`UPDATE vms SET state = 'STATE_CRASHED' WHERE id = $1`, [id])
    await page.reload()
    const notes = main().getByRole('region', { name: 'Alerts' })
    await notes.getByText('broken crashed and is still billed.').waitFor()
    await notes.getByText('0.90 USD/h').waitFor()
    await notes.getByRole('button', { name: 'Stop broken' }).click()
    await dialog().getByText('this saves 0.90 USD/h').waitFor()
    await dialog().getByRole('button', { name: 'Stop VM' }).click()
    await result('Stopped broken').waitFor()
    await notes.waitFor({ state: 'detached' })
  })

  test('a type that is out of stock offers the locations where it fits', async () => {
    await open('/vms/new?type=a100.8x&location=eu-north1-a')
    await summary().getByText('a100.8x in eu-north1-a').waitFor()
    const all = { ...vmRequest('takes-all', 'a100.8x'), location: 'eu-north1-a' }
    await service.asOwner.vmCreate({ project_id }, all)
    await summary().getByText('a100.8x is out of stock in eu-north1-a.').waitFor()
    await summary().getByRole('button', { name: 'Use us-east1-a' }).click()
    await summary().getByText('a100.8x in us-east1-a').waitFor()
  })

  test('the secret of an access key is shown once and works, and the key can be revoked', async () => {
    await open('/settings/keys')
    await main().getByRole('button', { name: 'Create key' }).first().click()
    await dialog().getByLabel('Name').fill('ci')
    await dialog().getByRole('button', { name: 'Create key' }).click()
    await dialog().getByText('It is shown only once.').waitFor()
    const secret = (await dialog().getByText(/^slp_/).textContent()) ?? ''
    const answer = await fetch(`${service.url}/v0.1/projects`, {
      headers: { authorization: `Bearer ${secret}` },
    })
    expect(answer.status).toBe(200)
    await dialog().getByRole('button', { name: 'Done' }).click()
    const row = page.getByRole('row', { name: /^ci/ })
    await row.waitFor()
    expect(await page.content()).not.toContain(secret)
    await row.getByRole('button', { name: 'Revoke ci' }).click()
    await dialog().getByRole('button', { name: 'Revoke key' }).click()
    await row.waitFor({ state: 'detached' })
  })

  test('usage shows what this month costs, and can be downloaded for one project or for all', async () => {
    await visit(page, `/projects/${service.project_id}/usage`)
    await main()
      .getByText(/USD in \w+ \d{4} so far/)
      .waitFor()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'CSV' }).click()
    expect((await download).suggestedFilename()).toMatch(/^slipway-usage-default-\d{4}-\d{2}\.csv$/)
    await main().getByLabel('Scope').selectOption('All projects')
    await main().getByLabel('Group by').selectOption('By project')
    await page.getByRole('img', { name: /No usage|by project/ }).waitFor()
    const whole = page.waitForEvent('download')
    await page.getByRole('button', { name: 'CSV' }).click()
    expect((await whole).suggestedFilename()).toMatch(/^slipway-usage-all-projects-/)
    expect(readFileSync(await (await whole).path(), 'utf8')).toMatch(/^date,project_id,/)
  })
})
