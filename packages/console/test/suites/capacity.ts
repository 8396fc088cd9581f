import { sshKey } from '@slipway/testing/ssh-key.ts'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  inBothThemes,
  isBrowserMissing,
  modalOf,
  onNarrowScreen,
  openOnNarrowScreen,
  result as resultOn,
  useConsole,
  visit,
  vmRequest,
} from '../support/browser.ts'
import type { Service } from '../support/service.ts'

describe.skipIf(isBrowserMissing)('capacity in the console', () => {
  const scene = useConsole('Capacity', 'owner and operator')
  let service: Service
  let page: Page
  let project_id: string
  beforeEach(() => {
    ;({ service, page } = scene)
    project_id = service.project_id
  })

  const main = () => page.getByRole('main')
  const dialog = () => modalOf(page)
  const summary = () => page.getByRole('complementary', { name: 'Summary' })
  const result = (words: string | RegExp) => resultOn(page, words)
  const open = (path: string) => visit(page, `/projects/${project_id}${path}`)
  const openTabOf = (tabs: string, name: string) =>
    page.getByRole('navigation', { name: tabs }).getByRole('link', { name, exact: true }).click()
  const row = (name: RegExp) => main().getByRole('row', { name })
  /** Returns accessibility problems in both themes, and layout problems on a narrow screen. */
  const findingsOn = async (name: string) => [
    ...(await inBothThemes(page, name)),
    ...(await onNarrowScreen(page, name)),
  ]
  const fillKey = async () => {
    const field = page.getByLabel('SSH public key')
    if ((await field.inputValue()) === '') await field.fill(sshKey)
  }

  test('several VMs are created as a group, which is resized, stopped, started and deleted', async () => {
    await open('/groups')
    await main().getByText('slipway group create trainer').waitFor()
    await main().getByRole('link', { name: 'Create group' }).first().click()
    await page.getByRole('radio', { name: /^a40\.1x/ }).check({ force: true })
    await page.getByLabel('Name', { exact: true }).fill('trainer')
    await page.getByLabel('Number of VMs').fill('65')
    await summary().getByRole('button', { name: 'Enter a number from 1 to 64' }).waitFor()
    await page.getByLabel('Number of VMs').fill('3')
    await main().getByText('The VMs are named trainer-1 to trainer-3.').waitFor()
    await summary().getByText('2.70 USD', { exact: false }).first().waitFor()
    await summary().getByText('slipway group create trainer').waitFor()
    await page.getByLabel('Placement').selectOption('Pack: on as few hosts as possible')
    await fillKey()
    await summary().getByRole('button', { name: 'Create 3 VMs' }).click()
    await page.getByRole('heading', { level: 1, name: 'trainer' }).waitFor()
    await result('trainer is running').waitFor()
    await main().getByText('healthy', { exact: true }).waitFor()
    const members = main().getByRole('table', { name: 'Members' })
    for (const rank of [0, 1, 2])
      await members
        .getByRole('row', { name: new RegExp(`^trainer-${rank + 1} ${rank} running 172\\..* no SSH`) })
        .waitFor()
    await main().getByText('on as few hosts as possible').waitFor()
    await main().getByText('2.70 USD/h').waitFor()
    expect(await findingsOn('group')).toEqual([])

    await page.getByRole('button', { name: 'Resize' }).click()
    await dialog().getByLabel('Number of VMs').fill('2')
    await dialog().getByText('Will be deleted: trainer-3').waitFor()
    await dialog().getByRole('button', { name: 'Resize group' }).click()
    await result('Resized trainer to 2 VMs').waitFor()
    await members.getByRole('row', { name: /^trainer-3/ }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Stop', exact: true }).click()
    await dialog().getByText('this saves 1.80 USD/h').waitFor()
    await dialog().getByRole('button', { name: 'Stop 2 VMs' }).click()
    await result('Stopped trainer').waitFor()
    await main().getByText('stopped', { exact: true }).first().waitFor()
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await result('Started trainer').waitFor()

    await members.getByRole('link', { name: 'trainer-2' }).click()
    await page.getByRole('heading', { level: 1, name: 'trainer-2' }).waitFor()
    await main().locator('dl').getByRole('link', { name: 'trainer', exact: true }).click()
    await page.getByRole('navigation', { name: 'Breadcrumbs' }).getByRole('link', { name: 'Groups' }).click()
    await row(/^trainer healthy 2 of 2 a40\.1x us-east1-a 1\.80/).waitFor()
    expect(await findingsOn('groups')).toEqual([])
    await main().getByRole('link', { name: 'trainer' }).click()
    await page.getByRole('button', { name: 'Delete group' }).click()
    await dialog().getByText('the group and its 2 VMs').waitFor()
    await dialog().getByLabel('Type trainer to confirm').fill('trainer')
    await dialog().getByRole('button', { name: 'Delete group' }).click()
    await result('Deleted trainer').waitFor()
    await main().getByText('This group no longer exists.').waitFor()
    expect(await service.asOwner.collect('vmList', { project_id })).toEqual([])
  })

  test('for a group that does not fit, the form offers the number of VMs that fit', async () => {
    await open('/vms/new?type=a100.8x&location=eu-north1-a&count=2')
    await summary().getByText('Only 1 × a100.8x available in eu-north1-a.').waitFor()
    await summary().getByRole('button', { name: 'Use us-east1-a' }).waitFor()
    await summary().getByRole('button', { name: 'Use 1 VM' }).click()
    expect(await page.getByLabel('Number of VMs').inputValue()).toBe('1')
    await summary().getByRole('button', { name: 'Create VM' }).waitFor()
  })

  test('a form is saved as a template, from which a VM and a new version are created', async () => {
    await open('/templates')
    await main().getByText('slipway template create trainer').waitFor()
    await main().getByRole('link', { name: 'Create template' }).first().click()
    await page.getByRole('heading', { level: 1, name: 'Create template' }).waitFor()
    await page.getByRole('radio', { name: /^a40\.2x/ }).check({ force: true })
    await page.getByLabel('Labels').fill('team=ml')
    await fillKey()
    await summary().getByRole('button', { name: 'Save as template' }).click()
    await dialog().getByLabel('Template name').fill('notebook')
    await dialog().getByRole('button', { name: 'Save template' }).click()
    await result('Saved template notebook, version 1').waitFor()
    await dialog().getByRole('heading', { name: 'Template notebook' }).waitFor()
    // The dialog is inside the form, which must not be submitted with it.
    expect(await service.asOwner.collect('vmList', { project_id })).toEqual([])
    await dialog().getByRole('link', { name: 'Create VM' }).click()

    await summary().getByText('a40.2x in us-east1-a').waitFor()
    await summary().getByText('--template notebook').waitFor()
    expect(await page.getByLabel('Labels').inputValue()).toBe('team=ml')
    await page.getByLabel('Name', { exact: true }).fill('from-template')
    await page.getByLabel('Labels').fill('')
    await summary().getByRole('button', { name: 'Save as template' }).click()
    await dialog().getByText('Saving creates version 2').waitFor()
    await dialog().getByRole('button', { name: 'Save new version' }).click()
    await result('Saved template notebook, version 2').waitFor()
    await summary().getByRole('button', { name: 'Create VM' }).click()
    await result('from-template is running').waitFor()
    const [vm] = await service.asOwner.collect('vmList', { project_id })
    const [latest, first] = await service.asOwner.collect('instanceTemplateList', { project_id })
    expect(vm).toMatchObject({ type: 'a40.2x', labels: {}, instance_template_id: first!.id })
    expect([first!.labels, latest!.labels]).toEqual([{ team: 'ml' }, undefined])
    await main().getByRole('link', { name: 'notebook, version 1' }).click()
    await dialog().getByLabel('Version').selectOption('1')
    await dialog().getByText('team=ml').waitFor()
    const part = '[data-modal]'
    expect(await inBothThemes(page, 'dialog-template', part)).toEqual([])
    expect(await openOnNarrowScreen(page, 'dialog-template', part)).toEqual([])
    await dialog().getByRole('button', { name: 'Delete version' }).click()
    await dialog().getByRole('button', { name: 'Delete version' }).click()
    await result('Deleted version 1 of notebook').waitFor()
    await page.keyboard.press('Escape')
    await row(/^notebook 2 a40\.2x us-east1-a/).waitFor()
    expect(await findingsOn('templates')).toEqual([])
  })

  test('several VMs that do not all fit wait for capacity as a group', async () => {
    const occupant = { ...vmRequest('occupant', 'a100.1x'), location: 'eu-north1-a' }
    const { operation } = await service.asOwner.vmCreate({ project_id }, occupant)
    await service.asOwner.wait({ project_id }, operation)
    await open('/vms/new?type=a100.4x&location=eu-north1-a')
    await page.getByLabel('Name', { exact: true }).fill('pair')
    await fillKey()
    await page.getByLabel('Number of VMs').fill('3')
    const wait = main().getByRole('region', { name: 'Wait for capacity' })
    await wait.getByRole('heading', { name: 'Only 1 × a100.4x available in eu-north1-a' }).waitFor()
    await summary().getByRole('button', { name: 'Wait for capacity' }).click()
    // The location has fewer GPUs than the group needs, so the request is refused.
    await summary().getByRole('alert').waitFor()
    await page.getByLabel('Number of VMs').fill('2')
    await wait.getByText('the group is created when its turn comes and all its VMs fit').waitFor()
    expect(await findingsOn('vm-create-wait-group')).toEqual([])
    await summary().getByRole('button', { name: 'Wait for capacity' }).click()
    const queue = main().getByRole('table', { name: 'Queue' })
    await queue.getByRole('row', { name: /^pair 2 × a100\.4x eu-north1-a waiting 1/ }).waitFor()
    await service.asOwner.vmDelete({ project_id, vm_id: operation.metadata.id })
    const ended = main().getByRole('table', { name: 'Ended requests' })
    await ended.getByRole('row', { name: /^pair fulfilled/ }).waitFor()
    await ended.getByRole('link', { name: 'pair' }).click()
    await page.getByRole('heading', { level: 1, name: 'pair' }).waitFor()
    const [pair] = await service.asOwner.collect('instanceGroupList', { project_id })
    const removal = await service.asOwner.instanceGroupDelete({ project_id, instance_group_id: pair!.id })
    await service.asOwner.wait({ project_id }, removal.operation)
    // The next test needs the whole host, whose GPUs are free after their reset.
    const stockOf = async (wanted: string) =>
      (await service.asOwner.capacityList({ project_id })).items.find(
        ({ type, location }) => type === wanted && location === 'eu-north1-a',
      )?.quantity
    await expect.poll(() => stockOf('a100.8x'), { timeout: 60_000 }).toBe(1)
  })

  test('a request waits for a type that is out of stock, and held GPUs are claimed', async () => {
    const all = { ...vmRequest('takes-all', 'a100.8x'), location: 'eu-north1-a' }
    const { operation } = await service.asOwner.vmCreate({ project_id }, all)
    await service.asOwner.wait({ project_id }, operation)
    await open('/vms/new?type=a100.8x&location=eu-north1-a')
    const wait = main().getByRole('region', { name: 'Wait for capacity' })
    await wait.getByText('a100.8x is out of stock in eu-north1-a').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('patient')
    await fillKey()
    await wait.getByText(/No requests are waiting for these GPUs\. There is no estimate yet/).waitFor()
    expect(await findingsOn('vm-create-wait')).toEqual([])
    await wait.getByLabel('Hold the GPUs').check()
    await summary().getByRole('button', { name: 'Wait for capacity' }).click()
    const queue = main().getByRole('table', { name: 'Queue' })
    await queue
      .getByRole('row', { name: /^patient a100\.8x eu-north1-a waiting 1 no estimate yet/ })
      .waitFor()

    await visit(page, '/fleet/queue')
    const queues = main().getByRole('table', { name: 'Queues' })
    await queues
      .getByRole('row', { name: /^a100 eu-north1-a 1 8 0 0 no estimate/ })
      .getByRole('button', { name: 'a100' })
      .click()
    await main().getByRole('heading', { name: 'Requests for a100 in eu-north1-a' }).waitFor()
    await row(/^Capacity \/ \S+ a100\.8x eu-north1-a waiting 1 8 0 no estimate/).waitFor()
    expect(await findingsOn('fleet-queue')).toEqual([])

    await service.asOwner.vmDelete({ project_id, vm_id: operation.metadata.id })
    await open('/queue')
    await queue.getByRole('row', { name: /^patient .* held claim within 1[45] min/ }).waitFor()
    expect(await findingsOn('queue')).toEqual([])
    await queue.getByRole('button', { name: 'Claim patient' }).click()
    await result('patient is running').waitFor()
    const ended = main().getByRole('table', { name: 'Ended requests' })
    await ended.getByRole('row', { name: /^patient fulfilled/ }).waitFor()

    await ended.getByRole('link', { name: 'patient' }).click()
    await page.getByRole('heading', { level: 1, name: 'patient' }).waitFor()
    const [patient] = await service.asOwner.collect('vmList', { project_id, names: 'patient' })
    const next = { ...vmRequest('next', 'a100.8x'), location: 'eu-north1-a' }
    const { id } = await service.asOwner.capacityRequestCreate({ project_id }, { vm: next })
    await service.asOwner.vmUpdate({ project_id, vm_id: patient!.id }, { action: 'STOP' })
    const granted = await service.asOwner.capacityRequestGet({
      project_id,
      capacity_request_id: id,
      wait: 30,
    })
    expect(granted.state).toBe('fulfilled')
    await page.getByRole('button', { name: 'Start', exact: true, disabled: false }).click()
    await dialog().getByText('No requests are waiting for these GPUs.').waitFor()
    await dialog().getByRole('button', { name: 'Wait for capacity' }).click()
    await queue.getByRole('row', { name: /^patient a100\.8x eu-north1-a waiting 1/ }).waitFor()
    await queue.getByRole('button', { name: 'Cancel patient' }).click()
    await dialog().getByRole('button', { name: 'Cancel request' }).click()
    await ended.getByRole('row', { name: /^patient cancelled/ }).waitFor()
  })

  test('an operator sells a reservation to an organization, which sees it and whose VMs use it', async () => {
    await visit(page, '/fleet/reservations')
    await main().getByRole('button', { name: 'Sell reservation' }).first().click()
    await dialog().getByRole('combobox', { name: 'Project' }).fill('capacity')
    await page.getByRole('option', { name: /default.*Capacity/ }).click()
    await dialog().getByLabel('Type').selectOption('l40s-48gb.1x')
    await dialog().getByLabel('Number of VMs').fill('2')
    await dialog()
      .getByLabel(/^Start/)
      .fill(localInput(-60_000))
    await dialog()
      .getByLabel(/^End/)
      .fill(localInput(31 * 86_400_000))
    await dialog().getByLabel('USD per GPU-hour').fill('1.10')
    await dialog().getByText('2 GPUs: 2.20 USD/h').waitFor()
    expect(await inBothThemes(page, 'dialog-sell', '[data-modal]')).toEqual([])
    expect(await openOnNarrowScreen(page, 'dialog-sell', '[data-modal]')).toEqual([])
    await dialog().getByRole('button', { name: 'Sell reservation' }).click()
    await result('Sold 2 × l40s-48gb.1x to Capacity').waitFor()
    await row(/^l40s-48gb\.1x us-east1-a Capacity active 2 of 2 0 .* 1\.10/).waitFor()
    expect(await findingsOn('fleet-reservations')).toEqual([])
    const { operation } = await service.asOwner.vmCreate({ project_id }, vmRequest('member', 'l40s-48gb.1x'))
    await service.asOwner.wait({ project_id }, operation)
    await open(`/vms/${operation.metadata.id}`)
    await main().getByRole('link', { name: 'reserved GPUs' }).click()
    await row(/^l40s-48gb\.1x us-east1-a active 2 of 2 1 .* 1\.10/).waitFor()
    expect(await findingsOn('reservations')).toEqual([])
    await visit(page, '/fleet')
    await openTabOf('Fleet', 'Reservations')
    await main().getByRole('button', { name: 'End the reservation of Capacity' }).click()
    await dialog().getByText('1 VM will keep running').waitFor()
    await dialog().getByRole('button', { name: 'End reservation' }).click()
    await row(/^l40s-48gb\.1x us-east1-a Capacity ended/).waitFor()
  })
})

/** Returns a time in the format of a `datetime-local` input. */
function localInput(fromNowMs: number): string {
  const date = new Date(Date.now() + fromNowMs)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
