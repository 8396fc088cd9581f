import { readFileSync } from 'node:fs'
import { createClient, logIn } from '@slipway/sdk'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  createVm,
  expectNoComplaints,
  isBrowserMissing,
  openTab,
  result as resultOn,
  signIn,
  sshKey,
  useConsole,
} from './browser.ts'
import { openLine } from './line.ts'
import type { Service } from './service.ts'

describe.skipIf(isBrowserMissing)('a tenant in the console', () => {
  const scene = useConsole()
  let service: Service
  let page: Page
  beforeAll(() => {
    ;({ service, page } = scene)
  })

  const main = () => page.getByRole('main')
  const result = (words: string | RegExp) => resultOn(page, words)
  const goTo = (name: string) =>
    page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name }).click()

  test('is told when the password is wrong, and comes in with the right one', async () => {
    await page.goto(`${service.url}/`)
    await page.getByLabel('E-mail').fill(service.credentials.email)
    await page.getByLabel('Password').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('The e-mail or the password is wrong.').waitFor()
    await page.getByRole('alert').getByText('Request id').waitFor()
    await signIn(page, service)
    await page.getByRole('heading', { level: 1, name: 'default' }).waitFor()
  })

  test('keeps no token where scripts of the page could read it later', async () => {
    const stored = await page.evaluate(
      () => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie,
    )
    expect(stored).not.toMatch(/slp[ar]_/)
    const cookies = await page.context().cookies(`${service.url}/_console/session`)
    expect(cookies).toMatchObject([{ httpOnly: true, sameSite: 'Strict', path: '/_console/session' }])
  })

  test('creates a VM with the keyboard shortcut and watches it run', async () => {
    await page.keyboard.press('c')
    await page.getByRole('heading', { level: 1, name: 'Create VM' }).waitFor()
    const create = page
      .getByRole('complementary', { name: 'Summary' })
      .getByRole('button', { name: 'Create VM' })
    expect(await create.getAttribute('aria-disabled')).toBe('true')
    await page.getByRole('radio', { name: /^a100\.2x/ }).check({ force: true })
    await page.getByRole('complementary', { name: 'Summary' }).getByText('2.90 USD').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('train-7')
    await page.getByLabel('SSH public key').fill('ssh-ed25519 AAAA')
    await page.getByText(/The key is not a valid public key/).waitFor()
    await page.getByLabel('SSH public key').fill(sshKey)
    await page.getByText('ssh-ed25519, 256 bits, ada@laptop').waitFor()
    await create.click()
    await page.getByRole('heading', { level: 1, name: 'train-7' }).waitFor()
    await page
      .getByRole('region', { name: 'Create VM' })
      .getByText(/power on|boot|place/i)
      .first()
      .waitFor()
    await main().getByText('running', { exact: true }).first().waitFor()
    await main()
      .getByText(/^ssh ubuntu@198\.18\./)
      .waitFor()
    await result('train-7 is running').waitFor()
  })

  test('reads the serial log as it grows', async () => {
    await page
      .getByRole('log', { name: 'Serial log' })
      .getByText(/A100 40GB PCIe ready/)
      .first()
      .waitFor()
  })

  test('creates a disk and attaches it', async () => {
    await goTo('Disks')
    await main().getByText('slipway disk create datasets').waitFor()
    await main().getByRole('button', { name: 'Create disk' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('datasets')
    await dialog.getByRole('button', { name: 'Create disk' }).click()
    await main()
      .getByRole('row', { name: /datasets/ })
      .getByText('available')
      .waitFor()
    await goTo('VMs')
    await main().getByRole('link', { name: 'train-7' }).click()
    await page.getByRole('button', { name: 'Attach disk' }).click()
    await dialog.getByRole('button', { name: 'Attach disk' }).click()
    await page.getByRole('table', { name: 'Disks' }).getByText('datasets').waitFor()
    await result('Attached datasets to train-7').waitFor()
  })

  test('writes a rule that explains itself, and tests a packet against it', async () => {
    await goTo('Network')
    await main().getByText('Allow tcp 22 from anywhere to every VM').waitFor()
    await page.getByRole('button', { name: 'Create rule' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill('allow-jupyter')
    await dialog.getByLabel('Destination ports').fill('8888')
    await dialog.getByText('Allow tcp 8888 from anywhere to every VM.').waitFor()
    const tester = page.getByRole('form', { name: 'Tester' })
    await dialog.getByRole('button', { name: 'Create rule' }).click()
    await main().getByText('Allow tcp 8888 from anywhere to every VM').waitFor()
    await result('The rule allow-jupyter is in force').waitFor()
    await tester.getByLabel('To', { exact: true }).fill('train-7')
    await tester.getByLabel('Port').fill('8888')
    await tester.getByRole('button', { name: 'Test' }).click()
    await tester.getByText('the rule allow-jupyter decides').waitFor()
    await tester.getByLabel('Port').fill('9999')
    await tester.getByRole('button', { name: 'Test' }).click()
    await tester.getByText('no rule allows it').waitFor()
  })

  test('sees what others do without reloading', async () => {
    await goTo('VMs')
    await main()
      .getByRole('row', { name: /train-7/ })
      .waitFor()
    const { project_id } = service.credentials
    await service.tenant.vmCreate(
      { project_id },
      {
        name: 'made-elsewhere',
        type: 'a40.1x',
        location: 'us-east1-a',
        image: 'ubuntu24.04-nvidia',
        ssh_public_key: sshKey,
      },
    )
    await main()
      .getByRole('row', { name: /made-elsewhere/ })
      .getByText('running')
      .waitFor()
  })

  test('finds things by name from anywhere', async () => {
    await page.keyboard.press('g')
    await page.keyboard.press('u')
    await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor()
    await page.keyboard.press('/')
    await page.getByRole('combobox', { name: /Search/ }).fill('made-else')
    await page.getByRole('option', { name: /made-elsewhere/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'made-elsewhere' }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByText('Search VMs, disks and pages').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog', { name: 'Help' }).waitFor({ state: 'detached' })
  })

  test('resets, stops and deletes; what the state forbids says why', async () => {
    await page.getByRole('button', { name: 'Start' }).hover()
    await page.getByText('Start is possible when the VM is shut off; it is running.').waitFor()
    await page.getByRole('button', { name: 'Reset' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Reset VM' }).click()
    await result('Reset made-elsewhere').waitFor()
    await main().getByText('running', { exact: true }).first().waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Stop VM' }).click()
    await main().getByText('shut off', { exact: true }).first().waitFor()
    await result('Stopped made-elsewhere').waitFor()
    await page.getByRole('button', { name: 'Delete VM' }).click()
    const dialog = page.getByRole('dialog')
    expect(await dialog.getByRole('button', { name: 'Delete VM' }).getAttribute('aria-disabled')).toBe('true')
    await dialog.getByLabel('Type made-elsewhere to confirm').fill('made-elsewhere')
    await dialog.getByRole('button', { name: 'Delete VM' }).click()
    await main().getByText('no longer exists').waitFor()
    await result('Deleted made-elsewhere').waitFor()
  })

  test('stops and deletes several VMs at once', async () => {
    await Promise.all(['batch-1', 'batch-2'].map((name) => createVm(service, name, 'a40.1x')))
    await goTo('VMs')
    const row = (name: string) => main().getByRole('row', { name: new RegExp(name) })
    await main().getByLabel('Filter by name, address or id').fill('batch-')
    await row('train-7').waitFor({ state: 'detached' })
    const act = async (verb: string) => {
      await main().getByLabel('Select all').check()
      await main().getByText('2 VMs selected').waitFor()
      await main().getByRole('button', { name: verb }).click()
      await page
        .getByRole('dialog')
        .getByText(/^batch-\d, batch-\d$/)
        .waitFor()
      await page
        .getByRole('dialog')
        .getByRole('button', { name: `${verb} 2 VMs` })
        .click()
    }
    await act('Stop')
    for (const name of ['batch-1', 'batch-2']) await row(name).getByText('shut off').waitFor()
    await result('Stopped 2 VMs').waitFor()
    await act('Delete')
    await main().getByText('No VM matches the filter.').waitFor()
    await result('Deleted 2 VMs').waitFor()
    await row('train-7').waitFor({ state: 'detached' })
    await main().getByRole('button', { name: 'Clear it' }).click()
    await row('train-7').waitFor()
  })

  test('says what would fit where when a type is out of stock', async () => {
    const { project_id } = service.credentials
    await page.goto(`${service.url}/projects/${project_id}/vms/new?type=a100.8x&location=eu-north1-a`)
    const summary = page.getByRole('complementary', { name: 'Summary' })
    await summary.getByText('a100.8x in eu-north1-a').waitFor()
    const taken = {
      name: 'takes-all',
      type: 'a100.8x',
      location: 'eu-north1-a',
      image: 'ubuntu24.04-nvidia',
      ssh_public_key: sshKey,
    }
    const { operation } = await service.tenant.vmCreate({ project_id }, taken)
    await summary.getByText('a100.8x is out of stock in eu-north1-a.').waitFor()
    await summary.getByRole('button', { name: 'Use us-east1-a' }).click()
    await summary.getByText('a100.8x in us-east1-a').waitFor()
    await service.tenant.vmDelete({ project_id, vm_id: operation.metadata.id })
  })

  test('gets a key whose secret is shown once and works', async () => {
    await goTo('Settings')
    await main().getByRole('button', { name: 'Create key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('ci')
    await dialog.getByRole('button', { name: 'Create key' }).click()
    await dialog.getByText('Shown this once.').waitFor()
    const secret = (await dialog.getByText(/^slp_/).textContent()) ?? ''
    const answer = await fetch(`${service.url}/v0.1/projects`, {
      headers: { authorization: `Bearer ${secret}` },
    })
    expect(answer.status).toBe(200)
    await dialog.getByRole('button', { name: 'I have stored it' }).click()
    const row = page.getByRole('row', { name: /^ci/ })
    await row.waitFor()
    expect(await page.content()).not.toContain(secret)
    await row.getByRole('button', { name: 'Revoke ci' }).click()
    await dialog.getByRole('button', { name: 'Revoke key' }).click()
    await row.waitFor({ state: 'detached' })
  })

  test('goes on through a restart of the server, in the middle of a creation', async () => {
    const { project_id } = service.credentials
    const request = {
      name: 'survivor',
      type: 'a40.1x',
      location: 'us-east1-a',
      image: 'ubuntu24.04-nvidia',
      ssh_public_key: sshKey,
    }
    const { operation } = await service.tenant.vmCreate({ project_id }, request)
    await page.goto(`${service.url}/projects/${project_id}/vms/${operation.metadata.id}`)
    await main().getByText('survivor').first().waitFor()
    await service.stop()
    await service.start()
    await main().getByText('running', { exact: true }).first().waitFor({ timeout: 30_000 })
    await main()
      .getByText(/^ssh ubuntu@198\.18\./)
      .waitFor()
  }, 120_000)

  test('sees what happened between the first reading and the start of the stream', async () => {
    const { project_id } = service.credentials
    const result = await createVm(service, 'quick', 'a40.1x')
    await page.goto('about:blank')
    // The page reads the VM as it was before, and the stream begins behind all that has happened to it.
    const json = { ...result, state: 'STATE_CREATING' }
    await page.route(`**/v0.1/projects/${project_id}/vms/${result.id}`, (route) => route.fulfill({ json }), {
      times: 1,
    })
    let begin = () => {}
    const isRead = new Promise<void>((resolve) => {
      begin = resolve
    })
    const beginning = '**/events?limit=20'
    await page.route(beginning, (route) => isRead.then(() => route.continue()))
    await page.goto(`${service.url}/projects/${project_id}/vms/${result.id}`)
    await main()
      .getByText(/^creating/)
      .first()
      .waitFor()
    begin()
    await main().getByText('running', { exact: true }).first().waitFor()
    await page.unroute(beginning)
    await service.tenant.vmDelete({ project_id, vm_id: result.id })
  })

  test('gets its events again after the restart', async () => {
    await page.getByRole('banner').getByText('Live', { exact: true }).waitFor()
    await goTo('Disks')
    await page.getByRole('row', { name: /datasets/ }).waitFor()
    const disk = { name: 'after-the-storm', size: '10GiB', location: 'us-east1-a' }
    await service.tenant.diskCreate({ project_id: service.credentials.project_id }, disk)
    await page
      .getByRole('row', { name: /after-the-storm/ })
      .getByText('available')
      .waitFor()
  })

  test('catches up when the line was cut and comes back', async () => {
    const line = await openLine(service.url)
    const far = await openTab(await scene.browser.newContext())
    await signIn(far.page, { ...service, url: line.url })
    await far.page.getByRole('link', { name: 'Disks' }).click()
    const live = far.page.getByRole('banner').getByText('Live', { exact: true })
    await live.waitFor()
    await line.cut()
    await far.page.getByRole('banner').getByText('Reconnecting', { exact: true }).waitFor()
    const disk = { name: 'made-meanwhile', size: '10GiB', location: 'us-east1-a' }
    await service.tenant.diskCreate({ project_id: service.credentials.project_id }, disk)
    await line.restore()
    await live.waitFor()
    await far.page.getByRole('row', { name: /made-meanwhile/ }).waitFor()
    expectNoComplaints(far)
    await far.page.context().close()
    await line.cut()
  })

  test('sees what this costs and downloads it', async () => {
    await goTo('Usage')
    await main()
      .getByText(/USD with today/)
      .waitFor()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'CSV' }).click()
    expect((await download).suggestedFilename()).toMatch(/^slipway-usage-default-\d{4}-\d{2}\.csv$/)
    await main().getByLabel('Scope').selectOption('All projects')
    await main().getByLabel('Bars by').selectOption('By project')
    await page.getByRole('img', { name: /No usage|by project/ }).waitFor()
    const whole = page.waitForEvent('download')
    await page.getByRole('button', { name: 'CSV' }).click()
    expect((await whole).suggestedFilename()).toMatch(/^slipway-usage-all-projects-/)
    expect(readFileSync(await (await whole).path(), 'utf8')).toMatch(/^date,project_id,/)
  })

  test('has two tabs that show the same, and signs out in both at once', async () => {
    const other = await openTab(page.context())
    await other.page.goto(`${service.url}/projects/${service.credentials.project_id}/disks`)
    const row = (on: Page) => on.getByRole('row', { name: /after-the-storm/ })
    await row(other.page).waitFor()
    await goTo('Disks')
    await row(page).getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByLabel('Type after-the-storm to confirm').fill('after-the-storm')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete disk' }).click()
    for (const on of [page, other.page]) await row(on).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Account' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await other.page.getByText('The session has ended.').waitFor()
    expectNoComplaints(other)
    await other.page.close()
  })

  const signInAgain = async () => {
    await page.getByText('The session has ended.').waitFor()
    await page.getByLabel('E-mail').fill(service.credentials.email)
    await page.getByLabel('Password').fill(service.credentials.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { level: 1, name: 'Disks' }).waitFor()
    await page.getByRole('row', { name: /datasets/ }).waitFor()
  }

  test('comes back to where they were when the session has expired', async () => {
    await signIn(page, service)
    await goTo('Disks')
    await page.getByRole('row', { name: /datasets/ }).waitFor()
    await service.sql('UPDATE access_tokens SET expires_at = slipway_now()')
    await service.sql('UPDATE refresh_tokens SET expires_at = slipway_now()')
    // Something to read anew.
    const disk = { name: 'too-late-to-see', size: '10GiB', location: 'us-east1-a' }
    await service.tenant.diskCreate({ project_id: service.credentials.project_id }, disk)
    await signInAgain()
  })

  test('goes on without noticing when only the access token has expired', async () => {
    await service.sql('UPDATE access_tokens SET expires_at = slipway_now()')
    const disk = { name: 'an-hour-later', size: '10GiB', location: 'us-east1-a' }
    await service.tenant.diskCreate({ project_id: service.credentials.project_id }, disk)
    await page
      .getByRole('row', { name: /an-hour-later/ })
      .getByText('available')
      .waitFor()
  })

  test('comes back to where they were when the session is ended elsewhere', async () => {
    const { email, password } = service.credentials
    const elsewhere = await logIn({ baseUrl: service.url, email, password })
    // Changing the password, even to the same one, ends all other sessions.
    await createClient({ baseUrl: service.url, token: elsewhere.token }).authPassword({
      current_password: password,
      new_password: password,
    })
    await signInAgain()
  })

  test('met no script error and no breach of the Content-Security-Policy', () =>
    expectNoComplaints(scene.tab))
})
