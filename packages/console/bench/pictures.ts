import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '@slipway/testing/root.ts'
import type { Page } from 'playwright-core'
import { visit, waitUntilLoaded } from '../test/support/browser-program.ts'
import { fillProject } from './contents.ts'
import { takeReadmePictures } from './readme-pictures.ts'
import { startScene } from './scene.ts'
import { situations } from './situations.ts'

// Takes screenshots of every page at three widths, in both themes, with 0, 1, 20 and 3,000 VMs, and of special situations
// (situations.ts), into artifacts/pictures: vms-3000-1280-dark.png is the list of 3,000 VMs, 1280 px wide, in the dark
// theme. `npm run pictures -- NAMES LOOKS` takes only those that match: `npm run pictures -- '^fleet' '1280-light'`. The
// pictures of the README go into docs/pictures; `npm run pictures -- readme` takes only them.

const widths = { 1280: 800, 768: 1024, 390: 844 }
const themes = ['light', 'dark'] as const
const counts = [0, 1, 20, 3_000]

/** Pages that change with the number of VMs; the others are taken once. */
const counted = {
  overview: '',
  vms: '/vms',
  'create-vm': '/vms/new',
  usage: '/usage',
  activity: '/activity',
}
const single = {
  vm: '/vms/VM',
  'vm-metrics': '/vms/VM/metrics',
  'vm-console': '/vms/VM/console',
  groups: '/groups',
  group: '/groups/GROUP',
  templates: '/templates',
  queue: '/queue',
  disks: '/disks',
  snapshots: '/snapshots',
  images: '/images',
  firewall: '/network/firewall',
  networks: '/network/networks',
  addresses: '/network/addresses',
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

const folder = join(root, 'artifacts/pictures')
mkdirSync(folder, { recursive: true })
const only = new RegExp(process.argv[2] ?? '')
const isWanted = (name: string) => only.test(name)
const looks = new RegExp(process.argv[3] ?? '')
let taken = isWanted('readme') ? await takeReadmePictures() : 0
if (process.argv[2] === 'readme') process.exit()
// Single pages and situations use the projects with few VMs. Creating 3,000 VMs takes long, so only do it if needed.
const needed = counts.filter(
  (count) => count <= 20 || Object.keys(counted).some((name) => isWanted(`${name}-${count}`)),
)
const scene = await startScene(Object.fromEntries(needed.map((count) => [`with-${count}`, count])))
try {
  const { page, owner, projects } = scene
  const project_id = projects['with-20']!
  const vm = (await owner.vmList({ project_id, names: 'train-7' })).items[0]!
  const ids = await fillProject(scene, project_id, vm)
  for (const count of needed)
    await take(page, counted, `/projects/${projects[`with-${count}`]}`, (name) => `${name}-${count}`)
  await take(page, single, `/projects/${project_id}`, (name) => name, ids)
  await take(page, { catalogue: '/catalogue', account: '/account' }, '', (name) => name)
  const hosts = await scene.operator.collect('adminHostList', {})
  const host = hosts.find(({ vms }) => vms.length > 0)!
  await take(await scene.signInAsOperator(), fleet, '/fleet', (name) => `fleet-${name}`, {
    HOST: host.id,
    VM: vm.id,
    ORGANIZATION: scene.organization_id,
    USER: (await owner.rootGet()).caller.id,
  })
  for (const [name, prepare] of Object.entries(situations)) {
    if (!isWanted(name)) continue
    const shown = await prepare(scene)
    await takeAll(shown, name)
    if (shown === page) await page.goto(`${scene.url}/account`)
    else await shown.context().close()
  }
} finally {
  await scene.close()
}
console.log(`${taken} pictures are in artifacts/pictures and docs/pictures`)

async function take(
  page: Page,
  paths: Record<string, string>,
  base: string,
  nameOf: (name: string) => string,
  ids: Record<string, string> = {},
): Promise<void> {
  // After sign-in the first page may still be loading.
  await page.goto(`${scene.url}/account`)
  await waitUntilLoaded(page)
  for (const [key, path] of Object.entries(paths)) {
    const name = nameOf(key)
    if (!isWanted(name)) continue
    await visit(page, base + path.replace(/[A-Z]{2,}/, (what) => ids[what] ?? what))
    await takeAll(page, name)
  }
}

async function takeAll(page: Page, name: string): Promise<void> {
  for (const [width, height] of Object.entries(widths)) {
    await page.setViewportSize({ width: Number(width), height })
    for (const theme of themes) {
      if (!looks.test(`${width}-${theme}`)) continue
      // The console has its own theme setting; pages of the server use the color scheme of the system.
      await page.emulateMedia({ colorScheme: theme })
      await page.evaluate((wanted) => {
        document.documentElement.dataset.theme = wanted
      }, theme)
      await page.screenshot({ path: join(folder, `${name}-${width}-${theme}.png`), animations: 'disabled' })
      taken += 1
    }
  }
}
