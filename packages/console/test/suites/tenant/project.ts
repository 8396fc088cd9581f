import { readFileSync } from 'node:fs'
import type { Locator } from 'playwright-core'
import { expect, test } from 'vitest'
import { closeSecret, createVm, pressChord, visit, vmRequest } from '../../support/browser.ts'
import type { Tenant } from './tenant.ts'

/** Tests of disks, firewall rules, keys and usage. */
export function projectTests(tenant: Tenant): void {
  const { main, dialog, result, open } = tenant

  test('a subnet and a project with VMs cannot be deleted, and the page explains why', async () => {
    const { service, page, project_id } = tenant
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

  test('the first disk is created in the dialog as soon as the locations are loaded', async () => {
    const { page } = tenant
    const locations = '**/locations'
    let load = () => {}
    const isLoaded = new Promise<void>((resolve) => {
      load = resolve
    })
    await page.route(locations, (route) => isLoaded.then(() => route.continue()))
    await open('/disks')
    await main().getByText('slipway disk create datasets').waitFor()
    await main().getByRole('button', { name: 'Create disk' }).first().click()
    await dialog().getByLabel('Name').fill('datasets')
    await dialog().getByRole('button', { name: 'Create disk', disabled: true }).waitFor()
    load()
    await dialog().getByRole('button', { name: 'Create disk', disabled: false }).click()
    await page.unroute(locations)
    await main()
      .getByRole('row', { name: /datasets/ })
      .getByText('available')
      .waitFor()
  })

  test('a disk is attached on the page of a VM', async () => {
    const { service, page, project_id } = tenant
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
    await open('/activity')
    await page.getByRole('table', { name: 'Events' }).getByText('Disks attached').waitFor()
  })

  test('the editor previews a firewall rule, and the tester names the rule that decides', async () => {
    const { service, page, project_id } = tenant
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
    // The text in the source field is used even though it was not added to the list.
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
    const { service, page, project_id } = tenant
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

  test('the secret of an access key is shown once and works, and the key can be revoked', async () => {
    const { service, page } = tenant
    await open('/settings/keys')
    await main().getByRole('button', { name: 'Create project key' }).first().click()
    await dialog().getByLabel('Name').fill('ci')
    await dialog().getByLabel('Kind').selectOption('Signing key')
    await dialog().getByText('This API works only if an operator has enabled it.').waitFor()
    await dialog().getByLabel('Kind').selectOption('Bearer key')
    await dialog().getByRole('button', { name: 'Create key' }).click()
    await dialog().getByText('It is shown only once.').waitFor()
    const secret = (await dialog().getByText(/^slp_/).textContent()) ?? ''
    const response = await fetch(`${service.url}/v0.1/projects`, {
      headers: { authorization: `Bearer ${secret}` },
    })
    expect(response.status).toBe(200)
    await closeSecret(dialog())
    const row = page.getByRole('row', { name: /^ci/ })
    await row.getByText('read', { exact: true }).waitFor()
    expect(await page.content()).not.toContain(secret)
    await row.getByRole('button', { name: 'Revoke ci' }).click()
    await dialog().getByRole('button', { name: 'Revoke key' }).click()
    await row.waitFor({ state: 'detached' })
  })

  test('usage shows the costs of this month, and can be downloaded for one project or for all', async () => {
    const { service, page } = tenant
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
}
