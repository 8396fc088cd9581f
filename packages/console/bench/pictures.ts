import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '@slipway/testing/root.ts'
import { settled, visit } from '../test/support/browser-program.ts'
import { startScene } from './scene.ts'

// Takes a picture of every page at three widths, in both themes, with 0, 1, 35 and 10,000 VMs: artifacts/pictures.

const widths = { 1440: 900, 768: 1024, 390: 844 }
const themes = ['light', 'dark']
const counts = { none: 0, one: 1, some: 35, many: 10_000 }

/** What changes with the number of VMs; the other pages are taken once. */
const counted = ['', '/vms', '/vms/new', '/usage', '/events']
const single = [
  '/vms/VM',
  '/disks',
  '/network/firewall',
  '/network/networks',
  '/operations',
  '/settings/keys',
  '/settings/ssh-keys',
  '/settings/members',
  '/settings/webhooks',
  '/settings/billing',
  '/settings/project',
  '/settings/organization',
]

const folder = join(root, 'artifacts/pictures')
mkdirSync(folder, { recursive: true })
const only = process.argv[2] ?? ''
const scene = await startScene(counts)
try {
  const { page, url, projects, owner } = scene
  const vm = (await owner.vmList({ project_id: projects.some!, names: 'train-7' })).items[0]!
  const targets = Object.entries(projects).flatMap(([name, id]) =>
    [...counted, ...(name === 'some' ? single : [])].map((path) => ({
      name: `${path.replace('/VM', '').replaceAll('/', '-').slice(1) || 'overview'}${path.endsWith('VM') ? '-one' : ''}-${name}`,
      path: `/projects/${id}${path.replace('VM', vm.id)}`,
    })),
  )
  targets.push({ name: 'account', path: '/account' })
  await page.goto(`${url}/account`)
  await settled(page)
  let taken = 0
  for (const { name, path } of targets.filter(({ name }) => name.includes(only))) {
    await visit(page, path)
    for (const [width, height] of Object.entries(widths)) {
      await page.setViewportSize({ width: Number(width), height })
      for (const theme of themes) {
        await page.evaluate((wanted) => {
          document.documentElement.dataset.theme = wanted
        }, theme)
        await page.screenshot({ path: join(folder, `${name}-${width}-${theme}.png`), animations: 'disabled' })
        taken += 1
      }
    }
  }
  console.log(`${taken} pictures are in artifacts/pictures`)
} finally {
  await scene.close()
}
