import type { Page } from 'playwright-core'
import { beforeEach, describe, test } from 'vitest'
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
    await dialog().getByLabel('Allow a crash-consistent copy').check({ force: true })
    await dialog().getByRole('button', { name: 'Create image' }).click()
    await result('Created image trainer:v1').waitFor()
    const row = main().getByRole('row', { name: /trainer:v1/ })
    await row.getByText('crash').waitFor()
    await row.getByRole('button', { name: 'Edit' }).click()
    await dialog().getByLabel('Deletion protection').check({ force: true })
    await dialog().getByRole('button', { name: 'Save' }).click()
    await row.getByRole('button', { name: /^Delete/, disabled: true }).waitFor()
    await screenshot(page, 'images')
    await open('/vms/new')
    await page.getByLabel('Location').first().waitFor()
    await page.getByLabel('Image', { exact: true }).selectOption({ label: 'trainer:v1 (your image)' })
    await page.getByText('--custom-image').first().waitFor()
  })
})
