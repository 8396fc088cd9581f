import { sshKey } from '@slipway/testing/ssh-key.ts'
import { expect, test } from 'vitest'
import { inBothThemes, onNarrowScreen, vmRequest } from '../../support/browser.ts'
import type { Tenant } from './tenant.ts'

/** Tests of the form that creates VMs. */
export function vmCreationTests(tenant: Tenant): void {
  const { main, summary, result, open } = tenant

  test('a shortcut opens the form for a VM, and the page of the new VM shows the steps of its creation', async () => {
    const { service, page } = tenant
    // The steps are visible only while the creation runs, so the engine fails until the test has seen them.
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

  test('a new VM can get a custom time to live', async () => {
    const { page } = tenant
    await open('/vms/new')
    await page.getByLabel('Expires after').selectOption('Custom')
    await page.getByLabel('Hours').fill('')
    await page.getByText('Enter a number of hours from 0.08 (5 minutes) to 720.').first().waitFor()
    await page.getByLabel('Hours').fill('1.5')
    await page.getByLabel('On expiry').selectOption('delete')
    await summary().getByText('--ttl 90m --on-expiry delete').waitFor({ state: 'attached' })
    await page.getByLabel('Expires after').selectOption('Never')
    await page.getByLabel('Hours').waitFor({ state: 'detached' })
  })

  test('a failed creation stays visible with its reason, and can be repeated with the same values', async () => {
    const { service, page, project_id } = tenant
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
    // The engine checks for faults periodically, and may not have seen this one yet.
    while (ended.state === 'SUCCEEDED') {
      const removal = await service.asOwner.vmDelete({ project_id, vm_id: ended.metadata.id })
      await service.asOwner.wait({ project_id }, removal.operation)
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
    const { service, page, project_id } = tenant
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

  test('a type that is out of stock offers the locations where it fits', async () => {
    const { service, project_id } = tenant
    await open('/vms/new?type=a100.8x&location=eu-north1-a')
    await summary().getByText('a100.8x in eu-north1-a').waitFor()
    const all = { ...vmRequest('takes-all', 'a100.8x'), location: 'eu-north1-a' }
    await service.asOwner.vmCreate({ project_id }, all)
    await summary().getByText('a100.8x is out of stock in eu-north1-a.').waitFor()
    await summary().getByRole('button', { name: 'Use us-east1-a' }).click()
    await summary().getByText('a100.8x in us-east1-a').waitFor()
  })
}
