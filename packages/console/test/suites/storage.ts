import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  createVm,
  isBrowserMissing,
  modalOf,
  result as resultOn,
  screenshot,
  useConsole,
  visit,
} from '../support/browser.ts'
import type { Service } from '../support/service.ts'

describe.skipIf(isBrowserMissing)('snapshots and images in the console', () => {
  const scene = useConsole('Storage')
  let service: Service
  let page: Page
  beforeEach(() => {
    ;({ service, page } = scene)
  })

  const main = () => page.getByRole('main')
  const dialog = () => modalOf(page)
  const result = (words: string | RegExp) => resultOn(page, words)
  const open = (path: string) => visit(page, `/projects/${service.project_id}${path}`)

  test('a snapshot of a disk is created, and restored to a larger disk', async () => {
    const { project_id } = service
    const disk = { name: 'corpus', size: '16GiB', location: 'us-east1-a' }
    const { operation } = await service.asOwner.diskCreate({ project_id }, disk)
    await service.asOwner.wait({ project_id }, operation)
    await open('/disks')
    await main().getByRole('link', { name: 'Snapshots' }).click()
    await main().getByText('slipway snapshot create datasets-monday').waitFor()
    await main().getByRole('button', { name: 'Create snapshot' }).first().click()
    await dialog().getByLabel('Name').fill('corpus-monday')
    await dialog().getByRole('button', { name: 'Create snapshot' }).click()
    await result('Created snapshot corpus-monday').waitFor()
    const row = main().getByRole('row', { name: /corpus-monday/ })
    await row.getByText('2.0 GiB').waitFor()
    await screenshot(page, 'snapshots')
    await row.getByRole('button', { name: 'Restore' }).click()
    await dialog().getByLabel('Size (GiB)').fill('8')
    await dialog().getByText('Enter at least 16 GiB').first().waitFor()
    await dialog().getByLabel('Size (GiB)').fill('32')
    await dialog().getByRole('button', { name: 'Create disk' }).click()
    await result('Created disk corpus-monday-copy from corpus-monday').waitFor()
    await main().getByRole('link', { name: 'Disks', exact: true }).click()
    await main()
      .getByRole('row', { name: /corpus-monday-copy/ })
      .getByText('32 GiB')
      .waitFor()
  })

  test('an image of a running VM is created, protected, and chosen for a new VM', async () => {
    await createVm(service, 'base', 'a40.1x', service.project_id)
    await open('/images')
    await main().getByRole('button', { name: 'Create image' }).first().click()
    await dialog().getByLabel('Name').fill('trainer:v1')
    await dialog().getByLabel('Copy even if the file systems cannot be frozen').check({ force: true })
    await dialog().getByRole('button', { name: 'Create image' }).click()
    await result('Created image trainer:v1').waitFor()
    const row = main().getByRole('row', { name: /trainer:v1/ })
    await row.getByText('crash-consistent').waitFor()
    await row.getByRole('button', { name: 'Edit' }).click()
    await dialog().getByLabel('Deletion protection').check({ force: true })
    await dialog().getByRole('button', { name: 'Save changes' }).click()
    await row.getByRole('button', { name: /^Delete/, disabled: true }).waitFor()
    await screenshot(page, 'images')
    await open('/vms/new')
    await page.getByLabel('Location').first().waitFor()
    await page.getByLabel('Image', { exact: true }).selectOption({ label: 'trainer:v1 (your image)' })
    await page.getByText('--custom-image').first().waitFor()
  })

  test('a disk is found in the list, shows the price of a larger size, and is detached', async () => {
    const { asOwner, project_id } = service
    const params = { project_id }
    const created = await asOwner.diskCreate(params, {
      name: 'scratchpad',
      size: '16GiB',
      location: 'us-east1-a',
    })
    const disk = (await asOwner.wait<{ id: string }>(params, created.operation)).result
    const vm = await createVm(service, 'holder', 'a40.1x', project_id)
    const attached = await asOwner.vmAttachDisks(
      { ...params, vm_id: vm.id },
      { attach_disks: [{ disk_id: disk.id, attachment_type: 'data', mode: 'read-write' }] },
    )
    await asOwner.wait(params, attached.operation)
    await open('/disks?use=attached&q=scratch')
    const row = main().getByRole('row', { name: /scratchpad/ })
    await row.waitFor()
    await expect.poll(() => main().getByRole('table').getByRole('row').count()).toBe(2)
    await expect.poll(() => page.title()).toBe('Disks · default · Slipway')
    await row.getByRole('button', { name: 'Actions for scratchpad' }).click()
    const menu = page.getByRole('menu', { name: 'Actions for scratchpad' })
    await menu.getByText('Cannot be deleted. Detach the disk first.').waitFor()
    expect(await menu.getByRole('menuitem', { name: 'Delete' }).count()).toBe(0)
    await menu.getByRole('menuitem', { name: 'Resize' }).click()
    const size = dialog().getByLabel('New size (GiB)')
    await expect.poll(() => size.evaluate((field) => field === document.activeElement)).toBe(true)
    await size.fill('32')
    await dialog()
      .getByText(/New size: 32\sGiB, .* USD per month/)
      .waitFor()
    await dialog().getByText('resize2fs').waitFor()
    await dialog().getByText('Show as CLI, Terraform or curl').click()
    await dialog().getByText('slipway disk resize scratchpad --size 32GiB').waitFor()
    await page.keyboard.press('Escape')
    await row.getByRole('button', { name: 'Detach scratchpad' }).click()
    await dialog().getByText('Unmount the disk first.').waitFor()
    await dialog().getByRole('button', { name: 'Detach disk' }).click()
    await result('Detached scratchpad').waitFor()
    await row.waitFor({ state: 'detached' })
  })

  test('the log of a VM is searched, and a similar VM is created', async () => {
    const vm = await createVm(service, 'model', 'a40.1x', service.project_id)
    await open(`/vms/${vm.id}`)
    const log = main().getByRole('log')
    await expect.poll(async () => (await log.innerText()).split('\n').length).toBeGreaterThan(3)
    await main().getByLabel('Search the log').fill('no line has this')
    await log.getByText('No line contains this text.').waitFor()
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      main().getByRole('button', { name: 'Download' }).click(),
    ])
    expect(saved.suggestedFilename()).toBe('model-serial.log')
    await main().getByRole('link', { name: 'Create similar' }).click()
    await main().getByText('Based on model').waitFor()
    await page.getByRole('radio', { name: /^a40\.1x/, checked: true }).waitFor()
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).not.toBe('model')
    await page.getByRole('tab', { name: 'Terraform' }).click()
    await page.getByText('resource "slipway_vm"').waitFor()
  })
})
