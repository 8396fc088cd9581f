import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '@slipway/testing/root.ts'
import type { Page } from 'playwright-core'
import { inBothThemes, setTheme } from '../test/support/appearance.ts'
import { visit, waitUntilLoaded } from '../test/support/browser-program.ts'
import { fillFleet, fillProject } from './contents.ts'
import { takeReadmePictures } from './readme-pictures.ts'
import { startScene } from './scene.ts'
import { situations } from './situations.ts'

// Takes screenshots of every page and dialog at three widths, in both themes, into artifacts/pictures:
// vms-3000-1280-dark.png is the list of 3,000 VMs, 1280 px wide, in the dark theme. Pages that are not very long are
// taken as a whole. Checks each page with axe at two widths in both themes, prints what it finds, and ends with exit
// code 1 if there is anything.
//
// Most pages show what a project with 20 VMs has. The tables `counted` and `ofManyVms`, here and in dialogs.ts, are the
// pages and dialogs that list, pick or count VMs: they are taken in several projects. The pages of operators show the
// VMs of all projects, so a whole run takes them with more than 3,000.
//
// `npm run pictures -- NAMES LOOKS` takes only those that match: `npm run pictures -- '^fleet' '1280-light'`. With
// `--only-axe` it takes no screenshots. The pictures of the README go into docs/pictures; `npm run pictures -- readme`
// takes only them.

const widths = { 1280: 800, 768: 1024, 390: 844 }
/** A phone and a desktop have different elements; a tablet has those of a desktop. */
const checkedWidths = ['1280', '390']
/** Longer pages, such as a list of 3,000 VMs, are taken as far as they are visible. */
const maxHeight = 6_000
const themes = ['light', 'dark'] as const
const counts = [0, 1, 20, 3_000]

/** Pages that are taken with every number of VMs. */
const counted = {
  overview: '',
  vms: '/vms',
  'create-vm': '/vms/new',
  usage: '/usage',
  activity: '/activity',
}
/** Pages that are taken with 20 and with 3,000 VMs, because they name or count VMs. */
const ofManyVms = {
  groups: '/groups',
  group: '/groups/GROUP',
  disks: '/disks',
  snapshots: '/snapshots',
  firewall: '/network/firewall',
  networks: '/network/networks',
  addresses: '/network/addresses',
}
/** Pages that are taken with 20 VMs. */
const single = {
  vm: '/vms/VM',
  'vm-never-there': '/vms/NOWHERE',
  'vm-metrics': '/vms/VM/metrics',
  'vm-console': '/vms/VM/console',
  templates: '/templates',
  queue: '/queue',
  images: '/images',
  'access-keys': '/settings/keys',
  'ssh-keys': '/settings/ssh-keys',
  members: '/settings/members',
  webhooks: '/settings/webhooks',
  webhook: '/settings/webhooks/WEBHOOK',
  billing: '/settings/billing',
  project: '/settings/project',
  organization: '/settings/organization',
  reservations: '/settings/reservations',
}
const ofAccount = {
  catalogue: '/catalogue',
  account: '/account',
  projects: '/projects',
  'no-access': '/projects/00000000-0000-7000-8000-000000000000',
  'operators-only': '/fleet',
}
const fleet = {
  map: '',
  host: '/hosts/HOST',
  vms: '/vms',
  vm: '/vms/VM',
  capacity: '/capacity',
  health: '/health',
  queue: '/queue',
  reservations: '/reservations',
  operations: '/operations?show=all',
  organizations: '/organizations',
  organization: '/organizations/ORGANIZATION',
  users: '/users',
  user: '/users/USER',
  quotas: '/quotas',
  prices: '/prices',
  images: '/images',
  audit: '/audit',
}

/** Popups hide the page below them. */
const popups = '[data-modal], [role=menu]'

const folder = join(root, 'artifacts/pictures')
mkdirSync(folder, { recursive: true })
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { 'only-axe': { type: 'boolean' } },
})
const [names, wantedLooks] = positionals
const isWanted = (name: string) => new RegExp(names ?? '').test(name)
const looks = new RegExp(wantedLooks ?? '')
let taken = isWanted('readme') && !values['only-axe'] ? await takeReadmePictures() : 0
if (names === 'readme') process.exit()
const namesOfMany = [
  ...Object.keys({ ...counted, ...ofManyVms }).map((name) => `${name}-3000`),
  ...Object.keys(situations).filter((name) => name.endsWith('-3000')),
]
// Creating 3,000 VMs takes long, so only do it if needed.
const needed = counts.filter((count) => count <= 20 || namesOfMany.some(isWanted))
const findings: string[] = []
const scene = await startScene(Object.fromEntries(needed.map((count) => [`with-${count}`, count])))
try {
  const { page, operatorPage, projects } = scene
  const filled = needed.filter((count) => count >= 20)
  for (const count of filled)
    scene.ids[`with-${count}`] = await fillProject(scene, projects[`with-${count}`]!)
  scene.ids.fleet = await fillFleet(scene, projects['with-20']!)
  for (const count of needed) await take(page, counted, `with-${count}`, (name) => `${name}-${count}`)
  for (const count of filled)
    await take(page, ofManyVms, `with-${count}`, (name) => (count === 20 ? name : `${name}-${count}`))
  await take(page, single, 'with-20', (name) => name)
  await take(page, ofAccount, '', (name) => name)
  await take(operatorPage, fleet, 'fleet', (name) => `fleet-${name}`)
  for (const [name, prepare] of Object.entries(situations)) {
    if (!isWanted(name)) continue
    try {
      const shown = await prepare(scene)
      await takeAll(shown, name)
      if (shown !== page && shown !== operatorPage) await shown.context().close()
    } catch (error) {
      findings.push(`${name}: could not be opened: ${error}`)
    }
    for (const shared of [page, operatorPage]) await shared.goto(`${scene.url}/account`)
  }
} finally {
  await scene.close()
}
console.log(`${taken} pictures are in artifacts/pictures and docs/pictures`)
for (const finding of findings) console.log(finding)
if (findings.length > 0) process.exitCode = 1

/** Takes the pages of a project, of `fleet`, or of neither. */
async function take(
  page: Page,
  paths: Record<string, string>,
  where: string,
  nameOf: (name: string) => string,
): Promise<void> {
  // After sign-in the first page may still be loading.
  await page.goto(`${scene.url}/account`)
  await waitUntilLoaded(page)
  for (const [key, path] of Object.entries(paths)) {
    const name = nameOf(key)
    if (!isWanted(name)) continue
    await visit(page, where ? scene.pathIn(where, path) : path)
    await takeAll(page, name)
  }
}

async function takeAll(page: Page, name: string): Promise<void> {
  for (const [width, height] of Object.entries(widths)) {
    const wanted = themes.filter((theme) => looks.test(`${width}-${theme}`))
    if (wanted.length === 0) continue
    await page.setViewportSize({ width: Number(width), height })
    if (!values['only-axe']) {
      await showWhole(page, Number(width), height)
      for (const theme of wanted) {
        await setTheme(page, theme)
        await page.screenshot({ path: join(folder, `${name}-${width}-${theme}.png`), animations: 'disabled' })
        taken += 1
      }
    }
    if (checkedWidths.includes(width)) {
      const hasPopup = (await page.locator(popups).count()) > 0
      findings.push(...(await inBothThemes(page, `${name} ${width}`, hasPopup ? popups : 'html')))
    }
  }
}

/** Makes the window as high as the page or the open dialog, which scrolls in it, when the page has its names and its layout. */
async function showWhole(page: Page, width: number, height: number): Promise<void> {
  await page.waitForFunction(() =>
    [...document.querySelectorAll('#content *')].every(({ textContent }) => textContent !== '…'),
  )
  const hidden = await page.evaluate(async () => {
    // A new width can change elements of the page, and those of a long list, in the next two frames.
    for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame)
    const scroller =
      document.querySelector('[data-modal]')?.parentElement ??
      document.querySelector('#content') ??
      document.documentElement
    return scroller.scrollHeight - scroller.clientHeight
  })
  if (hidden > 0 && height + hidden <= maxHeight)
    await page.setViewportSize({ width, height: height + hidden })
}
