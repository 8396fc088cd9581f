import type { Page } from 'playwright-core'
import { visit } from '../test/support/browser-program.ts'
import type { Scene } from './scene.ts'

/** A dialog: the page below it, and the name of the button that opens it. */
type Opening = [path: string, button: string]

const ofProject: Record<string, Opening> = {
  'ssh-key': ['/settings/ssh-keys', 'Add SSH key'],
  'organization-key': ['/settings/keys', 'Create organization key'],
  member: ['/settings/members', 'Invite member'],
  'quota-request': ['/settings/organization', 'Request higher quota'],
  network: ['/network/networks', 'Create network'],
  subnet: ['/network/networks', 'Add subnet'],
  address: ['/network/addresses', 'Reserve address'],
  'assign-address': ['/network/addresses', 'Assign gateway'],
  'edit-rule': ['/network/firewall', 'Edit allow-ssh'],
  snapshot: ['/snapshots', 'Create snapshot'],
  'restore-snapshot': ['/snapshots', 'Restore'],
  image: ['/images', 'Create image'],
  'attach-disk': ['/disks', 'Attach'],
  'resize-disk': ['/disks', 'Resize'],
  'edit-disk': ['/disks', 'Edit'],
  'delete-disk': ['/disks', 'Delete'],
  'cancel-request': ['/queue', 'Cancel nightly'],
  'edit-vm': ['/vms/VM', 'Edit name, labels and protection'],
  'stop-vm': ['/vms/VM', 'Stop'],
  'reset-vm': ['/vms/VM', 'Reset'],
  'delete-vm': ['/vms/VM', 'Delete VM'],
  'attach-to-vm': ['/vms/VM', 'Attach disk'],
}

const ofFleet: Record<string, Opening> = {
  'register-host': ['', 'Register host'],
  maintenance: ['/hosts/HOST', 'Announce maintenance'],
  'host-note': ['/hosts/HOST', 'Edit note'],
  drain: ['/hosts/HOST', 'Drain'],
  'delete-vm': ['/vms', 'Delete'],
  organization: ['/organizations', 'Create organization'],
  suspend: ['/organizations', 'Suspend'],
  user: ['/users', 'Add user'],
  approve: ['/quotas', 'Approve Disk (GiB) of Demo'],
  image: ['/images', 'Import image'],
  reservation: ['/reservations', 'Sell reservation'],
}

/** The dialogs that a button opens, as situations. */
export const dialogs: Record<string, (scene: Scene) => Promise<Page>> = {
  ...bindScene(ofProject, 'dialog', async (scene, [path, button]) => {
    const project_id = scene.projects['with-20']!
    const [vm] = (await scene.owner.vmList({ project_id, names: 'train-7' })).items
    await visit(scene.page, `/projects/${project_id}${path.replace('VM', vm!.id)}`)
    return openDialog(scene.page, button)
  }),
  ...bindScene(ofFleet, 'dialog-fleet', async (scene, [path, button]) => {
    const page = await scene.signInAsOperator()
    const hosts = await scene.operator.collect('adminHostList', {})
    const host = hosts.find(({ vms }) => vms.length > 0)!
    await visit(page, `/fleet${path.replace('HOST', host.id)}`)
    return openDialog(page, button)
  }),
}

function bindScene(
  openings: Record<string, Opening>,
  prefix: string,
  open: (scene: Scene, opening: Opening) => Promise<Page>,
): Record<string, (scene: Scene) => Promise<Page>> {
  return Object.fromEntries(
    Object.entries(openings).map(([name, opening]) => [
      `${prefix}-${name}`,
      (scene: Scene) => open(scene, opening),
    ]),
  )
}

async function openDialog(page: Page, button: string): Promise<Page> {
  await page.getByRole('main').getByRole('button', { name: button, exact: true }).first().click()
  await page.getByRole('dialog').first().waitFor()
  return page
}
