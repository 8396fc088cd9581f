import { generateKeyPairSync } from 'node:crypto'
import { hoursPerMonth } from '@slipway/contract/vm-types'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import type { Locator, Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  createVm,
  isBrowserMissing,
  modalOf,
  result as resultOn,
  takeProject,
  useConsole,
  visit,
  vmRequest,
} from '../support/browser.ts'
import type { Service } from '../support/service.ts'

describe.skipIf(isBrowserMissing)('resources and controls of the console', () => {
  const scene = useConsole('Controls')
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
  const createDisk = async (name: string, more = {}) => {
    const disk = { name, size: '10GiB', location: 'us-east1-a', ...more }
    const { operation } = await service.asOwner.diskCreate({ project_id }, disk)
    await service.asOwner.wait({ project_id }, operation)
  }

  test('a VM gets a name, description, labels and deletion protection, which disables deletion', async () => {
    const vm = await createVm(service, 'plain', 'a40.1x', project_id)
    await open(`/vms/${vm.id}`)
    await main().getByRole('button', { name: 'Edit name, labels and protection' }).click()
    await dialog().getByLabel('Name').fill('trainer')
    await dialog().getByLabel('Description').fill('Fine-tuning run of November')
    await dialog().getByLabel('Labels').fill('Team=ml')
    await dialog().getByText('Team=ml: keys can contain lowercase letters').waitFor()
    await dialog().getByLabel('Labels').fill('team=ml, gpu-job')
    await dialog().getByLabel('Deletion protection').check()
    await dialog().getByRole('button', { name: 'Save changes' }).click()
    await page.getByRole('heading', { level: 1, name: 'trainer' }).waitFor()
    await main().getByText('Fine-tuning run of November').waitFor()
    await main().getByText('team=ml').waitFor()
    const remove = main().getByRole('button', { name: 'Delete VM', disabled: true })
    const reason = page.getByText('Deletion protection is on.')
    await remove.hover()
    await reason.waitFor()
    await page.mouse.move(0, 0)
    await reason.waitFor({ state: 'detached' })
    // Touch screens have no hover, so a press also shows the reason.
    await remove.dispatchEvent('click')
    await reason.waitFor()
    expect(await service.asOwner.vmGet({ project_id, vm_id: vm.id })).toMatchObject({
      name: 'trainer',
      labels: { team: 'ml', 'gpu-job': '' },
      deletion_protection: true,
    })
  })

  test('a click on a label filters the list by that label', async () => {
    const vms = [
      { ...vmRequest('trainer', 'a40.1x'), labels: { team: 'ml' } },
      { ...vmRequest('tester', 'a40.1x'), labels: { team: 'qa' } },
    ]
    for (const vm of vms) await service.asOwner.vmCreate({ project_id }, vm)
    await createDisk('datasets', { labels: { team: 'ml' } })
    await createDisk('scratch')
    await open('/vms')
    const row = (name: RegExp) => main().getByRole('row', { name })
    await row(/tester/).waitFor()
    await main().getByRole('button', { name: 'team=ml' }).click()
    await row(/tester/).waitFor({ state: 'detached' })
    expect(await row(/trainer/).count()).toBe(1)
    await page.waitForURL((url) => url.searchParams.get('labels') === 'team=ml')
    await main().getByLabel('Filter by labels').fill('team!=ml')
    await row(/trainer/).waitFor({ state: 'detached' })
    await row(/tester/).waitFor()
    await open('/disks?labels=!team')
    await row(/scratch/).waitFor()
    expect(await row(/datasets/).count()).toBe(0)
  })

  test('typing quickly in a filter loses no character and keeps the other filters', async () => {
    await createVm(service, 'trainer', 'a40.1x', project_id)
    await open('/vms')
    await main().getByLabel('Filter by name, address or ID').focus()
    // All characters in one task, without a render in between.
    await page.evaluate(() => {
      for (const key of 'trainer') document.execCommand('insertText', false, key)
    })
    await page.waitForURL((url) => url.searchParams.get('q') === 'trainer')
    await main().getByRole('link', { name: 'trainer' }).waitFor()
    await main().getByLabel('Filter by labels').focus()
    await page.evaluate(() => {
      for (const key of 'team=ml') document.execCommand('insertText', false, key)
    })
    await page.waitForURL((url) => url.search === '?q=trainer&labels=team%3Dml')
    await main().getByText('No VMs match the filters.').waitFor()
    await main().getByRole('button', { name: 'Clear filter' }).click()
    await main().getByRole('link', { name: 'trainer' }).waitFor()
    expect(await main().getByLabel('Filter by name, address or ID').inputValue()).toBe('')
  })

  test('long names are not cut off in lists', async () => {
    const name = `gateway-${'production-'.repeat(4)}replica-17`
    await createVm(service, name, 'a40.1x', project_id)
    for (const path of ['/vms', '/activity']) {
      await open(path)
      const cell = main().getByRole('cell').filter({ hasText: name }).first()
      await cell.waitFor()
      const cut = await cell.evaluate((element) => element.scrollWidth - element.clientWidth)
      expect(cut, path).toBe(0)
      expect(await cell.evaluate((element) => getComputedStyle(element).whiteSpace), path).toBe('normal')
    }
  })

  test('a tenant sees that an operator stopped a VM, but not which operator', async () => {
    const { id } = await createVm(service, 'trainer', 'a40.1x', project_id)
    await service.operator.adminVmStop({ vm_id: id })
    await open('/activity')
    await main()
      .getByRole('row', { name: /^VM stopped.* VM trainer an operator / })
      .first()
      .waitFor()
  })

  test('the page of a VM that never existed shows the requested ID', async () => {
    const id = '00000000-0000-7000-8000-000000000000'
    await open(`/vms/${id}`)
    await main().getByText('This project has no VM with this ID').waitFor()
    await main().getByText(id, { exact: true }).waitFor()
  })

  test('tabs keep their position when the page changes', async () => {
    await open('/settings/keys')
    const tabs = page.getByRole('navigation', { name: 'Settings' }).getByRole('link')
    const positions = () => tabs.evaluateAll((links) => links.map((link) => link.getBoundingClientRect().x))
    await page.getByRole('heading', { level: 1 }).waitFor()
    const before = await positions()
    expect(before.length).toBeGreaterThan(3)
    await tabs.filter({ hasText: 'Members' }).click()
    await tabs.and(page.locator('[aria-current=page]')).filter({ hasText: 'Members' }).waitFor()
    // The tab is current before its page is rendered.
    await main().getByText('can see all of its projects').waitFor()
    expect(await positions()).toEqual(before)
  })

  test('a VM is created with several keys of the project', async () => {
    await open('/settings/ssh-keys')
    const add = async (key: string, name: string) => {
      await main().getByRole('button', { name: 'Add SSH key' }).first().click()
      await dialog().getByLabel('Public key').fill(key)
      if (name) await dialog().getByLabel('Name').fill(name)
      await dialog().getByRole('button', { name: 'Add key' }).click()
      await dialog().waitFor({ state: 'detached' })
    }
    await add(sshKey, '')
    await add(anotherKey(), 'ci')
    await main()
      .getByRole('row', { name: /ada@laptop/ })
      .getByText(/^SHA256:/)
      .waitFor()
    await open('/vms/new')
    await page.getByRole('checkbox', { name: 'ada@laptop' }).check()
    await page.getByLabel(/^ci/).check()
    await page.getByLabel('Name', { exact: true }).fill('shared')
    await page.getByLabel('Another SSH public key').fill('')
    await summary().getByText('--ssh-key ada@laptop').waitFor()
    await summary().getByRole('button', { name: 'Create VM' }).click()
    await page.getByRole('heading', { level: 1, name: 'shared' }).waitFor()
    const [vm] = await service.asOwner.collect('vmList', { project_id })
    expect(vm!.ssh_public_keys).toHaveLength(2)
    await open('/settings/ssh-keys')
    await main().getByRole('button', { name: 'Remove ci' }).click()
    await dialog().getByRole('button', { name: 'Remove key' }).click()
    await main().getByRole('row', { name: /^ci/ }).waitFor({ state: 'detached' })
  })

  test('attaching a disk offers to create one, and then shows the mount commands', async () => {
    const vm = await createVm(service, 'trainer', 'a40.1x', project_id)
    await open(`/vms/${vm.id}`)
    await main().getByRole('button', { name: 'Attach disk' }).click()
    await dialog().getByText('No unattached disks in us-east1-a.').waitFor()
    await dialog().getByRole('button', { name: 'Create a disk in us-east1-a' }).click()
    await dialog().getByLabel('Name').fill('datasets')
    await dialog().getByRole('button', { name: 'Create disk' }).click()
    const attach = page.getByRole('dialog', { name: 'Attach a disk to trainer' })
    await attach.getByLabel('Disk').locator('option', { hasText: 'datasets' }).waitFor({ state: 'attached' })
    await attach.getByRole('button', { name: 'Attach disk' }).click()
    const [disk] = await service.asOwner.collect('diskList', { project_id })
    await dialog().getByText(disk!.serial_number).waitFor()
    await dialog().getByText('/mnt/datasets').first().waitFor()
    await dialog().getByRole('button', { name: 'Close' }).last().click()
    await page.getByRole('table', { name: 'Disks' }).getByText('datasets').waitFor()
  })

  test('the list of disks shows prices and can attach a disk', async () => {
    await createVm(service, 'trainer', 'a40.1x', project_id)
    await createDisk('datasets', { size: '1000GiB' })
    const { items } = await service.asOwner.priceList({ project_id })
    const { usd } = items.find(({ product_name }) => product_name === 'persistent-ssd')!
    await open('/disks')
    const row = main().getByRole('row', { name: /datasets/ })
    await row.getByText((usd * 1000 * hoursPerMonth).toFixed(2)).waitFor()
    await row.getByRole('button', { name: 'Attach' }).click()
    await dialog().getByRole('button', { name: 'Attach disk' }).click()
    await dialog().getByText('/mnt/datasets').first().waitFor()
    await page.keyboard.press('Escape')
    await row.getByRole('link', { name: 'trainer' }).waitFor()
  })

  test('a disk that is created in the form for a VM is attached to the VM', async () => {
    await open('/vms/new')
    await main().getByRole('button', { name: 'Create a disk' }).click()
    await dialog().getByLabel('Name').fill('datasets')
    await dialog().getByRole('button', { name: 'Create disk' }).click()
    await page.getByRole('checkbox', { name: /^datasets/, checked: true }).waitFor()
    await page.getByLabel('Name', { exact: true }).fill('trainer')
    await page.getByLabel('SSH public key').fill(sshKey)
    await summary().getByRole('button', { name: 'Create VM' }).click()
    await page.getByRole('table', { name: 'Disks' }).getByText('datasets').waitFor()
  })

  test('the price and the create button stay visible on a phone', async () => {
    await page.setViewportSize({ width: 390, height: 844 })
    await open('/vms/new')
    await page.getByLabel('SSH public key').fill(sshKey)
    const button = main().getByRole('button', { name: 'Create VM' })
    for (const section of ['Type', 'Disks', 'Options']) {
      await main().getByRole('group', { name: section }).scrollIntoViewIfNeeded()
      const box = (await button.boundingBox())!
      expect(box.y, section).toBeGreaterThan(0)
      expect(box.y + box.height, section).toBeLessThanOrEqual(844)
    }
    await main().getByText('USD/h').last().waitFor()
    await button.click()
    await page.getByRole('heading', { level: 1, name: /-/ }).waitFor()
  })

  test('the project menu opens below its button, marks the current project and finds another', async () => {
    await open('/disks')
    const { name } = await service.asOwner.projectGet({ project_id })
    const button = page.getByRole('button', { name: /^Project/ })
    await button.click()
    const current = page.getByRole('option').filter({ has: page.getByLabel('current') })
    await current.getByText(name).waitFor()
    expect(await current.count()).toBe(1)
    const left = async (of: Locator) => Math.round((await of.boundingBox())!.x)
    expect(await left(page.getByRole('dialog', { name: 'Project' }))).toBe(await left(button))
    await page.getByRole('combobox', { name: 'Find a project' }).fill('defau')
    await current.waitFor({ state: 'detached' })
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'default' }).waitFor()
  })

  test('a disabled button is readable and differs from an enabled one', async () => {
    await open('/settings/billing')
    const save = main().getByRole('button', { name: 'Save budget' })
    for (const theme of ['light', 'dark']) {
      await page.evaluate((theme) => Object.assign(document.documentElement.dataset, { theme }), theme)
      await main().getByLabel('Monthly limit (USD)').fill('100')
      const live = await save.evaluate(appearanceOf)
      const element = await save.elementHandle()
      await main().getByLabel('Monthly limit (USD)').fill('a lot')
      const off = await save.evaluate(appearanceOf)
      // The element must stay the same, or it would lose the focus.
      expect(await save.evaluate((now, before) => now === before, element), theme).toBe(true)
      expect(off.contrast, theme).toBeGreaterThanOrEqual(4.5)
      expect(Math.abs(off.brightness - live.brightness), theme).toBeGreaterThan(0.1)
    }
  })

  test('Enter does not confirm a destructive action', async () => {
    const vm = await createVm(service, 'trainer', 'a40.1x', project_id)
    await open(`/vms/${vm.id}`)
    // The reason is visible without hovering over the button.
    await main().getByText('To change the type, stop the VM first. It is running.').waitFor()
    for (const action of ['Stop', 'Delete VM']) {
      const { y } = (await main().getByRole('button', { name: action }).boundingBox())!
      expect(y, `${action} is at the top of the page`).toBeLessThan(200)
      await main().getByRole('button', { name: action }).click()
      await dialog().waitFor()
      if (action === 'Delete VM') {
        await dialog().getByLabel('Type trainer to confirm').and(page.locator(':focus')).waitFor()
        await page.keyboard.type('train')
        await page.keyboard.press('Enter')
        await dialog().getByRole('button', { name: 'Cancel' }).click()
      } else {
        await page.waitForFunction(() => document.activeElement?.textContent === 'Cancel')
        await page.keyboard.press('Enter')
      }
      await dialog().waitFor({ state: 'detached' })
    }
    expect((await service.asOwner.vmGet({ project_id, vm_id: vm.id })).state).toBe('STATE_RUNNING')
  })

  test('a copy button copies the value next to it', async () => {
    const { url } = service
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url })
    await createVm(service, 'trainer', 'a40.1x', project_id)
    await open('/vms')
    const address = await main()
      .getByText(/^198\.18\./)
      .textContent()
    await Promise.all([
      main().getByRole('button', { name: 'Copied' }).waitFor(),
      main()
        .getByRole('button', { name: `Copy ${address}` })
        .click(),
    ])
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(address)
  })

  test('content under a toast can be scrolled into view', async () => {
    const vm = await createVm(service, 'trainer', 'a40.1x', project_id)
    await page.setViewportSize({ width: 1280, height: 500 })
    await open(`/vms/${vm.id}`)
    await main().getByRole('button', { name: 'Stop' }).click()
    await dialog().getByRole('button', { name: 'Stop VM' }).click()
    await result('Stopped trainer').waitFor()
    // The toast stays open under the pointer.
    await result('Stopped trainer').hover()
    // Refetched data can make the page longer.
    const covered = async () => {
      await main().evaluate((element) => element.scrollTo(0, element.scrollHeight))
      const toast = (await page.getByRole('region', { name: /notification/i }).boundingBox())!
      const last = (await main().getByRole('button', { name: 'Change type' }).boundingBox())!
      return last.y + last.height - toast.y
    }
    await expect.poll(covered).toBeLessThanOrEqual(0)
  })
})

/** Runs in the page. Returns the brightness of a button and the contrast of its text. */
function appearanceOf(button: Element): { brightness: number; contrast: number } {
  const brightnessOf = (colour: string) => {
    const brush = document.createElement('canvas').getContext('2d')!
    brush.fillStyle = colour
    brush.fillRect(0, 0, 1, 1)
    const [red, green, blue] = [...brush.getImageData(0, 0, 1, 1).data].map((value) => {
      const part = value / 255
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
  }
  const { color, backgroundColor } = getComputedStyle(button)
  const [words, ground] = [brightnessOf(color), brightnessOf(backgroundColor)]
  const contrast = (Math.max(words, ground) + 0.05) / (Math.min(words, ground) + 0.05)
  return { brightness: ground, contrast }
}

/** Returns a new public key in the format of `ssh-keygen -t ed25519`. */
function anotherKey(): string {
  const { publicKey } = generateKeyPairSync('ed25519')
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  const field = (bytes: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes])
  const body = Buffer.concat([field(Buffer.from('ssh-ed25519')), field(raw)])
  return `ssh-ed25519 ${body.toString('base64')}`
}
