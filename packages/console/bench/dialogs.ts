import type { Page } from 'playwright-core'
import { visit } from '../test/support/browser-program.ts'
import type { Scene } from './scene.ts'

/** What opens a dialog: the name of a button to press, or something else to do first. */
type Step = string | RegExp | ((page: Page) => Promise<unknown>)
/** A dialog: the page below it, and the steps that open it. */
type Opening = [path: string, ...steps: Step[]]

const fill = (label: string, text: string) => (page: Page) =>
  partOf(page).getByLabel(label).first().fill(text)
const choose = (label: string, choice: string) => (page: Page) =>
  partOf(page).getByLabel(label).selectOption(choice)
const tick =
  (...names: string[]) =>
  async (page: Page) => {
    for (const name of names) await page.getByLabel(`Select ${name}`, { exact: true }).check()
  }

/** Opens the menus of the rows, until one has the entry, and chooses it. Menus omit what is not possible. */
const chooseInMenu = (entry: string) => async (page: Page) => {
  const item = page.getByRole('menuitem', { name: entry, exact: true })
  for (const button of await partOf(page)
    .getByRole('button', { name: /^Actions for / })
    .all()) {
    await button.click()
    await page.getByRole('menu').waitFor()
    if ((await item.count()) > 0) return item.click()
    await page.keyboard.press('Escape')
    await page.getByRole('menu').waitFor({ state: 'detached' })
  }
}

const ofProject: Record<string, Opening> = {
  'attach-to-vm': ['/vms/VM', 'Attach disk'],
  'delete-vm': ['/vms/VM', 'Delete VM'],
  'detach-from-vm': ['/vms/VM', 'Detach results'],
  'edit-vm': ['/vms/VM', 'Edit name, labels and protection'],
  expiry: ['/vms/VM', 'Set expiry'],
  mount: ['/vms/VM', 'Mount commands'],
  'reset-vm': ['/vms/VM', 'Reset'],
  'stop-vm': ['/vms/VM', 'Stop'],
  'change-type': ['/vms/STOPPED', 'Change type'],
  'save-template': ['/vms/new?like=VM', 'Save as template'],

  'stop-group': ['/groups/GROUP', 'Stop'],
  'resize-group': ['/groups/GROUP', 'Resize'],
  'delete-group': ['/groups/GROUP', 'Delete group'],
  template: ['/templates', 'trainer'],
  'delete-template': ['/templates', 'trainer', /^Delete (template|version)$/],
  'cancel-request': ['/queue', 'Cancel nightly'],

  'detach-disk': ['/disks', 'Detach results'],
  'edit-disk': ['/disks', chooseInMenu('Edit')],
  'resize-disk': ['/disks', chooseInMenu('Resize')],
  'delete-disk': ['/disks', chooseInMenu('Delete')],
  snapshot: ['/snapshots', 'Create snapshot'],
  'restore-snapshot': ['/snapshots', 'Restore'],
  'edit-snapshot': ['/snapshots', 'Edit'],
  'delete-snapshot': ['/snapshots', 'Delete'],
  image: ['/images', 'Create image'],
  'edit-image': ['/images', 'Edit'],
  'delete-image': ['/images', 'Delete'],

  'edit-rule': ['/network/firewall', 'Edit allow-ssh'],
  'delete-rule': ['/network/firewall', 'Delete allow-ssh'],
  network: ['/network/networks', 'Create network'],
  'delete-network': ['/network/networks', 'Delete'],
  subnet: ['/network/networks', 'Add subnet'],
  'delete-subnet': ['/network/networks', /^Delete ./],
  'unassign-address': ['/network/addresses', 'Unassign front'],
  'delete-address': ['/network/addresses', 'Delete gateway'],

  'key-secret': ['/settings/keys', 'Create project key', fill('Name', 'nightly-run'), 'Create key'],
  'revoke-key': ['/settings/keys', 'Revoke ci'],
  'organization-key': ['/settings/keys', 'Create organization key'],
  'organization-key-secret': [
    '/settings/keys',
    'Create organization key',
    fill('Name', 'inventory'),
    'Create key',
  ],
  'revoke-organization-key': ['/settings/keys', 'Revoke robots'],
  'ssh-key': ['/settings/ssh-keys', 'Add SSH key'],
  'remove-ssh-key': ['/settings/ssh-keys', 'Remove laptop'],
  member: ['/settings/members', 'Invite member'],
  'member-secret': ['/settings/members', 'Invite member', fill('E-mail', 'joan@example.com'), 'Invite'],
  'promote-member': ['/settings/members', choose('Role of mary@example.com', 'owner')],
  'demote-member': ['/settings/members', choose('Role of mary@example.com', 'viewer')],
  'remove-member': ['/settings/members', 'Remove mary@example.com'],
  'edit-webhook': ['/settings/webhooks/WEBHOOK', 'Edit'],
  'webhook-secret': ['/settings/webhooks/WEBHOOK', 'Rotate secret'],
  'delete-webhook': ['/settings/webhooks/WEBHOOK', 'Delete'],
  'quota-request': ['/settings/organization', 'Request higher quota'],
  recipients: ['/settings/organization', 'Change recipients'],
}

/** Dialogs that list or pick VMs. They are taken with 20 and with 3,000 VMs. */
const ofManyVms: Record<string, Opening> = {
  'attach-disk': ['/disks', 'Attach'],
  address: ['/network/addresses', 'Reserve address'],
  'assign-address': ['/network/addresses', 'Assign gateway'],
  'move-address': ['/network/addresses', 'Move front'],
  'rule-for-vm': ['/network/firewall', 'Create rule', fill('Destination: add', 'train-7')],
  'bulk-start': ['/vms', tick('train-7', 'notebook'), 'Start'],
  'bulk-stop': ['/vms', tick('all'), 'Stop'],
  'bulk-labels': ['/vms', tick('all'), 'Edit labels'],
  'bulk-protection': ['/vms', tick('all'), 'Change protection'],
  'bulk-delete': ['/vms', tick('all'), 'Delete'],
}

const ofFleet: Record<string, Opening> = {
  'register-host': ['', 'Register host'],
  maintenance: ['/hosts/HOST', 'Announce maintenance'],
  'host-note': ['/hosts/HOST', 'Add note'],
  drain: ['/hosts/HOST', 'Drain'],
  'remove-host': ['/hosts/EMPTY', 'Remove'],
  'stop-vm': ['/vms', 'Stop'],
  'delete-vm': ['/vms', 'Delete'],
  organization: ['/organizations', 'Create organization'],
  suspend: ['/organizations', 'Suspend'],
  user: ['/users', 'Add user'],
  'user-secret': ['/users', 'Add user', fill('E-mail', 'dorothy@example.com'), tickOperator, 'Add user'],
  'suspend-user': ['/users/USER', 'Suspend'],
  'remove-two-factor': ['/users/USER', 'Remove two-factor'],
  'reset-link': ['/users/USER', 'Create reset link'],
  'remove-operator': ['/users/OPERATOR', 'Remove operator access'],
  approve: ['/quotas', 'Approve Disk (GiB) of Demo'],
  reject: ['/quotas', 'Reject Disk (GiB) of Demo'],
  prices: ['/prices', fill('Price of a100.1x,', '1.95'), fill('Price of snapshot,', '0.0002'), 'Set prices'],
  image: ['/images', 'Register image'],
  'image-locations': ['/images', /^Locations of/],
  'remove-image': ['/images', /^Remove /],
  reservation: ['/reservations', 'Sell reservation'],
  'end-reservation': ['/reservations', /^End the reservation/],
}

function tickOperator(page: Page): Promise<void> {
  return partOf(page)
    .getByLabel(/^Operator/)
    .check()
}

/** The dialogs that a button opens, as situations. */
export const dialogs: Record<string, (scene: Scene) => Promise<Page>> = {
  ...asSituations(ofProject, 'with-20', (name) => `dialog-${name}`),
  ...asSituations(ofManyVms, 'with-20', (name) => `dialog-${name}`),
  ...asSituations(ofManyVms, 'with-3000', (name) => `dialog-${name}-3000`),
  ...asSituations(ofFleet, 'fleet', (name) => `dialog-fleet-${name}`),
}

function asSituations(
  openings: Record<string, Opening>,
  where: string,
  nameOf: (name: string) => string,
): Record<string, (scene: Scene) => Promise<Page>> {
  return Object.fromEntries(
    Object.entries(openings).map(([name, [path, ...steps]]) => [
      nameOf(name),
      async (scene: Scene) => {
        const page = where === 'fleet' ? scene.operatorPage : scene.page
        await visit(page, scene.pathIn(where, path))
        await openDialog(page, ...steps)
        // The form is a dialog too, and stays until the service has returned the secret.
        if (name.endsWith('-secret')) await page.locator('[data-secret]').waitFor()
        return page
      },
    ]),
  )
}

/** The part of the page that can be used: an open dialog hides the rest. */
const partOf = (page: Page) => page.getByRole('main').or(page.locator('[data-modal]:visible').last())

/** Takes the steps, and waits for the dialog. A button that is disabled does not count. */
export async function openDialog(page: Page, ...steps: Step[]): Promise<Page> {
  for (const step of steps) {
    if (typeof step === 'function') await step(page)
    else await partOf(page).getByRole('button', { name: step, exact: true, disabled: false }).first().click()
  }
  await page.locator('[data-modal]').first().waitFor()
  return page
}
