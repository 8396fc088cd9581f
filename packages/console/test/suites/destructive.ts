import type { Disk, Vm } from '@slipway/sdk'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { describe, expect, test } from 'vitest'
import {
  closeSecret,
  createVm,
  inBothThemes,
  isBrowserMissing,
  modalOf,
  openOnNarrowScreen,
  openTab,
  result,
  signInAsOperator,
  takeProject,
  useConsole,
  visit,
  vmRequest,
} from '../support/browser.ts'

describe.skipIf(isBrowserMissing)('destructive actions in the console', () => {
  const scene = useConsole('Danger')
  const main = () => scene.page.getByRole('main')
  const dialog = () => modalOf(scene.page)
  const open = (projectId: string, path: string) => visit(scene.page, `/projects/${projectId}${path}`)

  test('a change that is made offline fails immediately and is never sent later', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const vm = await createVm(service, 'stays-up', 'a40.1x', project_id)
    await open(project_id, `/vms/${vm.id}`)
    await page.getByRole('banner').getByText('Live', { exact: true }).waitFor()
    const sent: string[] = []
    page.on('request', (request) => request.method() === 'PATCH' && sent.push(request.url()))
    await page.context().setOffline(true)
    const banner = page.getByText('You are offline. Showing the last known data.')
    await banner.waitFor()
    await page.getByRole('banner').getByText('Offline', { exact: true }).waitFor()
    await main().getByText('stays-up').first().waitFor()
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await dialog().getByRole('button', { name: 'Stop VM' }).click()
    await result(page, 'You are offline. The request was not sent.').waitFor()
    await page.context().setOffline(false)
    await banner.waitFor({ state: 'detached' })
    await page.getByRole('banner').getByText('Live', { exact: true }).waitFor()
    expect(sent).toEqual([])
    expect(await service.asOwner.vmGet({ project_id, vm_id: vm.id })).toMatchObject({
      state: 'STATE_RUNNING',
    })
  })

  test('a disk is detached from a running VM only after a warning that names the device', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const { operation } = await service.asOwner.diskCreate(
      { project_id },
      { name: 'datasets', size: '10GiB', location: 'us-east1-a' },
    )
    const { result: disk } = await service.asOwner.wait<Disk>({ project_id }, operation)
    const request = { ...vmRequest('writer', 'a40.1x'), disks: [{ disk_id: disk.id }] }
    const creation = await service.asOwner.vmCreate({ project_id }, request)
    const { result: vm } = await service.asOwner.wait<Vm>({ project_id }, creation.operation)
    await open(project_id, `/vms/${vm.id}`)
    const detach = main().getByRole('button', { name: 'Detach datasets' })
    await detach.click()
    await dialog().getByText('Unmount the disk first.').waitFor()
    await dialog().getByText('sudo umount "$disk"').filter({ hasText: disk.serial_number }).waitFor()
    expect(await inBothThemes(page, 'detach', '[data-modal]')).toEqual([])
    expect(await openOnNarrowScreen(page, 'detach', '[data-modal]')).toEqual([])
    // Enter alone does not confirm.
    await page.keyboard.press('Enter')
    await dialog().waitFor({ state: 'detached' })
    expect((await service.asOwner.vmGet({ project_id, vm_id: vm.id })).disks).toHaveLength(2)
    await detach.click()
    await dialog().getByRole('button', { name: 'Detach disk' }).click()
    await result(page, 'Detached datasets').waitFor()
    await detach.waitFor({ state: 'detached' })
  })

  test('several VMs are deleted only after the user types how many', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    for (const name of ['one', 'two']) await createVm(service, name, 'a40.1x', project_id)
    await open(project_id, '/vms')
    for (const name of ['one', 'two'])
      await main()
        .getByRole('checkbox', { name: `Select ${name}` })
        .check()
    await main().getByRole('button', { name: 'Delete' }).click()
    const remove = dialog().getByRole('button', { name: 'Delete 2 VMs' })
    expect(await remove.isEnabled()).toBe(false)
    await dialog().getByLabel('Type 2 to confirm').fill('2')
    await remove.click()
    await result(page, 'Deleted 2 VMs').waitFor()
  })

  test('a new key can only read by default, and its expiry and allowed addresses can be chosen', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await open(project_id, '/settings/keys')
    const create = async (button: string, name: string, fill: () => Promise<unknown>) => {
      await main().getByRole('button', { name: button, exact: true }).first().click()
      await dialog().getByLabel('Name').fill(name)
      await fill()
      await dialog().getByRole('button', { name: 'Create key' }).click()
      await closeSecret(dialog())
    }
    const daysLeft = (iso: string) => Math.round((Date.parse(iso) - Date.now()) / 86_400_000)
    await create('Create project key', 'reader', async () => {
      await dialog().getByText('View all resources in this project, without changing anything.').waitFor()
      await dialog().getByLabel('Allowed IPs').fill('203.0.113.0/24, 198.51.100.7')
      expect(await inBothThemes(page, 'dialog-key', '[data-modal]')).toEqual([])
      expect(await openOnNarrowScreen(page, 'dialog-key', '[data-modal]')).toEqual([])
    })
    const keys = await service.asOwner.collect('accessKeyList', { project_id })
    const reader = keys.find(({ name }) => name === 'reader')!
    expect(reader).toMatchObject({ role: 'read', allowed_cidrs: ['203.0.113.0/24', '198.51.100.7'] })
    expect(daysLeft(reader.expires_at)).toBe(90)
    await create('Create organization key', 'watcher', async () => {
      await dialog().getByText('Also manage members, billing and the organization itself.').waitFor()
      await dialog().getByLabel('Expires').selectOption('In 30 days')
    })
    const { organization_id } = service
    const [watcher] = await service.asOwner.collect('organizationKeyList', { organization_id })
    expect(watcher).toMatchObject({ name: 'watcher', role: 'viewer', allowed_cidrs: [] })
    expect(daysLeft(watcher!.expires_at)).toBe(30)
  })

  test('a dialog that shows a new secret asks before it closes, until the secret is copied', async () => {
    const { service, page } = scene
    await open(takeProject(service), '/settings/keys')
    await page.getByRole('button', { name: 'Create project key' }).first().click()
    await dialog().getByLabel('Name').fill('ci')
    await dialog().getByRole('button', { name: 'Create key' }).click()
    await dialog().getByText('It is shown only once').waitFor()
    await page.keyboard.press('Escape')
    await dialog().getByText('If you lose it, revoke this key and create another.').waitFor()
    await dialog().getByRole('button', { name: 'Keep open' }).click()
    await dialog().getByText(/^slp/).waitFor()
    await dialog().getByRole('button', { name: 'Done' }).click()
    await dialog().getByRole('button', { name: 'Close anyway' }).waitFor()
    await dialog().getByRole('button', { name: 'Keep open' }).click()
    await closeSecret(dialog())
    await dialog().waitFor({ state: 'detached' })
  })

  test('an invitation can be sent again, and making a member an owner needs a confirmation', async () => {
    const { service, page } = scene
    await open(takeProject(service), '/settings/members')
    await page.getByRole('button', { name: 'Invite member' }).click()
    await dialog().getByLabel('E-mail').fill('grace@danger.example')
    await dialog().getByRole('button', { name: 'Invite' }).click()
    const link = () =>
      dialog()
        .getByText(/\/accept#code=/)
        .textContent()
    const first = await link()
    await closeSecret(dialog())
    await page.getByRole('button', { name: 'Invite grace@danger.example again' }).click()
    await dialog().getByText('It is shown only once').waitFor()
    expect(await link()).not.toBe(first)
    await closeSecret(dialog())
    await page.getByLabel('Role of grace@danger.example').selectOption('owner')
    await dialog().getByText('An owner can do everything').waitFor()
    await dialog().getByRole('button', { name: 'Cancel' }).click()
    expect(await page.getByLabel('Role of grace@danger.example').inputValue()).toBe('member')
  })

  test('a dialog explains what suspending an organization does, and members see that it is suspended', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await service.asOwner.vmCreate(
      { project_id },
      { ...vmRequest('keeps-running', 'a40.1x'), ssh_public_key: sshKey },
    )
    await open(project_id, '/vms')
    await main().getByText('keeps-running').waitFor()
    const operator = await openTab(await scene.browser.newContext())
    await signInAsOperator(operator.page, service)
    await operator.page.getByRole('link', { name: 'Organizations' }).click()
    const row = operator.page.getByRole('row', { name: /^Danger/ })
    await row.getByRole('button', { name: 'Suspend' }).click()
    await modalOf(operator.page).getByText('Its VMs will keep running').waitFor()
    await modalOf(operator.page).getByRole('button', { name: 'Suspend organization' }).click()
    await row.getByText('suspended').waitFor()
    await main().getByText('This organization is suspended').waitFor()
    await row.getByRole('button', { name: 'Restore' }).click()
    await row.getByText('active').waitFor()
    await main().getByText('keeps-running').waitFor()
    await operator.page.context().close()
    await page.getByRole('banner').waitFor()
  })
})
