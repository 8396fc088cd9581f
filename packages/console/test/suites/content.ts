import { describe, expect, test } from 'vitest'
import { wide } from '../support/appearance.ts'
import {
  closeSecret,
  createVm,
  inBothThemes,
  isBrowserMissing,
  modalOf,
  openOnNarrowScreen,
  openTab,
  screenshot,
  signIn,
  takeProject,
  useConsole,
  visit,
  waitUntilLoaded,
} from '../support/browser.ts'

describe.skipIf(isBrowserMissing)('the content of the console', () => {
  const scene = useConsole('Content')
  const main = () => scene.page.getByRole('main')
  const dialog = () => modalOf(scene.page)
  const summary = () => scene.page.getByRole('complementary', { name: 'Summary' })
  const open = (projectId: string, path: string) => visit(scene.page, `/projects/${projectId}${path}`)

  test('a type that exceeds a quota is not preselected, and the summary names the quota', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await service.operator.adminQuotaSet({ project_id, items: [{ name: 'a100_gpus', max: 0 }] })
    await open(project_id, '/vms/new')
    await summary()
      .getByText(/ in us-east1-a\. Billed/)
      .waitFor()
    // The page may show the previous quotas until the event about the change arrives.
    await expect.poll(() => summary().getByText('a100.1x').count(), { timeout: 20_000 }).toBe(0)
    await main()
      .getByLabel(/^a100\.1x/)
      .check({ force: true })
    const create = summary().getByRole('button', { name: 'Create VM' })
    expect(await create.isEnabled()).toBe(false)
    // The reason links to the field.
    await summary()
      .getByRole('button', { name: /is too low: 0 of 0 used/ })
      .click()
    await page.waitForFunction(() => document.activeElement?.getAttribute('name') === 'vm-type')
  })

  test('the tighter limit of project and organization is shown, with its owner', async () => {
    const { service } = scene
    const project_id = takeProject(service)
    await service.operator.adminQuotaSet({ project_id, items: [{ name: 'a40_gpus', max: 1 }] })
    await open(project_id, '')
    const ownLimits = main().getByRole('region', { name: 'Project limits' })
    await ownLimits.getByText('0 of 1', { exact: true }).waitFor()
    expect(await ownLimits.getByRole('meter').count()).toBe(1)
    const wholeLimits = main().getByRole('region', { name: /^Organization limits/ })
    await wholeLimits.getByRole('meter', { name: 'VMs' }).waitFor()
    await open(project_id, '/vms/new?type=a40.1x')
    const after = async (name: string) =>
      Number(await summary().getByRole('meter', { name }).getAttribute('aria-valuenow'))
    expect(await after('A40 GPUs (project)')).toBe(1)
    const whole = await service.asOwner.organizationQuotaList({ organization_id: service.organization_id })
    const { used } = whole.items.find(({ name }) => name === 'vms')!
    expect(await after('VMs (organization)')).toBe(used + 1)
  })

  test('each type shows its stock, and the locations are visible without scrolling', async () => {
    const { service, page } = scene
    await page.setViewportSize({ width: 1440, height: 900 })
    await open(takeProject(service), '/vms/new')
    await main()
      .getByLabel(/^a40\.1x, .*, \d+ in us-east1-a$/)
      .waitFor()
    await main()
      .getByLabel(/^a100\.1x, .*, \d+ in 2 locations$/)
      .waitFor()
    const box = (await main().getByRole('group', { name: 'Location' }).boundingBox())!
    expect(box.y + box.height).toBeLessThan(900)
  })

  test('the events of a webhook are selected from the existing types', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await open(project_id, '/settings/webhooks')
    await page.getByRole('button', { name: 'Create webhook' }).first().click()
    await dialog().getByLabel('URL').fill('http://127.0.0.1:9/hook')
    await dialog().getByLabel('Only these').check()
    await dialog().getByRole('button', { name: 'Create webhook', disabled: true }).waitFor()
    await dialog().getByLabel('Disks', { exact: true }).check()
    await dialog()
      .getByRole('button', { name: /of VMs$/ })
      .click()
    await dialog().getByLabel('VM crashed').check()
    await dialog().getByText('Only: Disks, VM crashed.').waitFor()
    const isMixed = (label: string) =>
      dialog()
        .getByLabel(label, { exact: true })
        .evaluate((box: HTMLInputElement) => box.indeterminate)
    expect([await isMixed('VMs'), await isMixed('Disks')]).toEqual([true, false])
    await screenshot(page, 'dialog-webhook-light')
    await dialog().getByRole('button', { name: 'Create webhook' }).click()
    await dialog().getByText('It is shown only once').waitFor()
    const [webhook] = await service.asOwner.collect('webhookList', { project_id })
    expect(webhook!.event_types).toEqual(['disk.*', 'vm.crashed'])
    await closeSecret(dialog())
    await main()
      .getByRole('row', { name: /Disks, VM crashed/ })
      .waitFor()
  })

  test('filters in the URL use the same words as the page', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await createVm(service, 'found', 'a40.1x', project_id)
    await open(project_id, '/vms?state=running')
    await main().getByRole('row', { name: /found/ }).waitFor()
    await main().getByLabel('State').selectOption('Any state')
    await page.waitForURL((url) => !url.searchParams.has('state'))
    await main().getByLabel('State').selectOption('running')
    await page.waitForURL((url) => url.searchParams.get('state') === 'running')
    await open(project_id, '/activity?state=failed')
    await main().getByText('No events match the filters.').waitFor()
  })

  test('names of locations and types do not break', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await createVm(service, 'placed', 'l40s-48gb.1x', project_id)
    for (const [path, words] of [
      ['/vms', 'placed'],
      ['/network/networks', 'default-subnet-us-east1-a'],
      ['/vms/new', 'Billed while it runs'],
    ] as const) {
      await open(project_id, path)
      await main().getByText(words).first().waitFor()
      for (const width of [320, 336, 352, 368, 390, 768, 1280]) {
        await page.setViewportSize({ width, height: 860 })
        await expect.poll(brokenLocations, { message: `${path} at ${width} px` }).toEqual([])
      }
    }
  })

  test('numbers and times have the format of the browser’s locale and time zone', async () => {
    const { service, browser } = scene
    const project_id = takeProject(service)
    const { id } = await createVm(service, 'abroad', 'a40.1x', project_id)
    const locale = { locale: 'de-DE', timezoneId: 'Asia/Tokyo' }
    const { page } = await openTab(await browser.newContext({ viewport: wide, ...locale }))
    await signIn(page, service)
    await visit(page, `/projects/${project_id}/vms/${id}`)
    const fact = (name: string) => page.getByRole('main').locator('dl > div', { hasText: name })
    await fact('Price').getByText('0,90 USD/h').waitFor()
    await fact('Created')
      .getByText(/^\d+\. \w+\.?,? .*GMT\+9$/)
      .waitFor()
    await visit(page, `/projects/${project_id}/activity`)
    await page.getByRole('columnheader', { name: 'Time (GMT+9)' }).waitFor()
    await page.context().close()
  })

  /** Returns visible texts in which the name of a location or type spans two lines; ignores commands. */
  const brokenLocations = () =>
    scene.page.evaluate(() => {
      const broken: string[] = []
      const texts = document.createTreeWalker(document.querySelector('main')!, NodeFilter.SHOW_TEXT)
      for (let text = texts.nextNode(); text; text = texts.nextNode()) {
        if (text.parentElement?.closest('pre, code')) continue
        for (const { index, 0: name } of text.textContent!.matchAll(
          /(?<![\w-])(?:[a-z]+-[a-z]+\d-[a-z]|[a-z]\w+(?:-\w+)?\.\d+x)\b/g,
        )) {
          const range = document.createRange()
          range.setStart(text, index)
          range.setEnd(text, index + name.length)
          const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
          if (lines.size > 1) broken.push(text.textContent!)
        }
      }
      return broken
    })

  test('a preset opens a port to the user’s address, and opening it to all shows a warning', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await open(project_id, '/network/firewall')
    await main().getByRole('button', { name: 'Create rule' }).click()
    await dialog().getByRole('button', { name: 'Jupyter 8888' }).click()
    await dialog().getByText('Allow tcp 8888 from 127.0.0.1 to every VM.').waitFor()
    expect(await dialog().getByRole('alert').count()).toBe(0)
    await dialog().getByLabel('Source: add').fill('anywhere')
    await dialog().getByText('This opens port 8888 to the whole internet.').waitFor()
    expect(await inBothThemes(page, 'dialog-rule-world', '[data-modal]')).toEqual([])
    expect(await openOnNarrowScreen(page, 'dialog-rule-world', '[data-modal]')).toEqual([])
    await dialog().getByRole('button', { name: 'Only my address (127.0.0.1)' }).click()
    await dialog().getByRole('alert').waitFor({ state: 'detached' })
    await dialog().getByRole('button', { name: 'Create rule' }).click()
    await main().getByText('Allow tcp 8888 from 127.0.0.1 to every VM').waitFor()
    const rules = await service.asOwner.collect('firewallRuleList', { project_id })
    expect(rules.find(({ name }) => name === 'allow-jupyter')!.sources).toEqual([
      { cidr: '127.0.0.1', resource_id: '' },
    ])
  })

  test('the cost of today is a separate bar', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    await createVm(service, 'costly', 'a40.1x', project_id)
    await open(project_id, '/usage')
    await main()
      .getByText(/^Today so far \d+\.\d\d USD, by product after midnight UTC$/)
      .waitFor()
    // Costs by product are known immediately.
    await main()
      .getByRole('table', { name: 'By product' })
      .getByRole('row', { name: /^a40\.1x (< 0\.01|\d+\.\d\d)$/ })
      .waitFor()
    await waitUntilLoaded(page)
    // The table is itemized, so the page must not say otherwise.
    expect(await main().getByText('not yet itemized').count()).toBe(0)
    await screenshot(page, 'usage-first-day-light')
    await main().getByLabel('Group by').selectOption('By VM')
    await main()
      .getByText(/^Today so far \d+\.\d\d USD, not yet itemized$/)
      .waitFor()
  })

  test('alerts are counted in the header, shown on the overview, and link to the resource', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    const vm = await createVm(service, 'fallen', 'a40.1x', project_id)
    await service.sql(`UPDATE vms SET state = 'STATE_CRASHED' WHERE id = $1`, [vm.id])
    await open(project_id, '')
    await main().getByRole('region', { name: 'Alerts' }).getByText('fallen').waitFor()
    await open(project_id, '/disks')
    await page.getByRole('button', { name: /^Alerts: [1-9]/ }).click()
    await screenshot(page, 'alerts-light')
    await page.getByRole('menuitem', { name: /fallen/ }).click()
    await page.getByRole('heading', { level: 1, name: 'fallen' }).waitFor()
    // The alert contains the last lines of the serial log.
    const notice = main().getByRole('region', { name: 'Alerts' })
    await notice.getByText(/Cloud-init finished\nfallen login:/).waitFor()
  })

  test('search finds a VM of another project, and can stop a VM of the open project', async () => {
    const { service, page } = scene
    const [here, there] = [takeProject(service), takeProject(service)]
    await createVm(service, 'near-by', 'a40.1x', here)
    const far = await createVm(service, 'far-away', 'a40.1x', there)
    await open(here, '/vms')
    await main()
      .getByRole('row', { name: /near-by/ })
      .waitFor()
    await page.keyboard.press('/')
    const box = page.getByRole('combobox', { name: /^Search/ })
    await box.fill('far-aw')
    await page.getByRole('option', { name: /far-away/ }).waitFor()
    await box.press('Enter')
    await page.waitForURL(`**/projects/${there}/vms/${far.id}`)
    await open(here, '/vms')
    await main()
      .getByRole('row', { name: /near-by/ })
      .waitFor()
    await page.keyboard.press('/')
    await box.fill('stop near')
    await page.getByRole('option', { name: /Stop near-by/ }).waitFor()
    await box.press('Enter')
    await dialog().getByText('Its GPUs will be released').waitFor()
    await dialog().getByRole('button', { name: 'Cancel' }).click()
    await dialog().waitFor({ state: 'detached' })
  })

  test('a click on a column title sorts the list of VMs, and the order is kept in the URL', async () => {
    const { service, page } = scene
    const project_id = takeProject(service)
    for (const name of ['vm-10', 'vm-9']) await createVm(service, name, 'a40.1x', project_id)
    await open(project_id, '/vms')
    await main().getByRole('row', { name: /vm-10/ }).waitFor()
    await main().getByRole('button', { name: 'Name' }).click()
    const names = () => main().getByRole('row').getByRole('link').allTextContents()
    await expect.poll(names).toEqual(['vm-9', 'vm-10'])
    await main().getByRole('button', { name: 'Name' }).click()
    await expect.poll(names).toEqual(['vm-10', 'vm-9'])
    await page.waitForURL((url) => url.searchParams.get('sort') === '-name')
  })
})
