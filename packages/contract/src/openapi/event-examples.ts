import type { EventType } from '../event-types.ts'
import type { RouteId } from '../routes.ts'
import { copyEvents } from './copy-events.ts'
import {
  deletionRepeated,
  type EventFacts,
  eventsOf,
  id,
  labels,
  operation_id,
  operationData,
} from './event-facts.ts'
import { recording } from './recording.ts'

export type { EventFacts, EventScope } from './event-facts.ts'

const vm = eventsOf('vm', id('b01'), 'project', { name: 'train-7', labels, operation_id })
const vmWithoutOperation = eventsOf('vm', id('b01'), 'project', { name: 'train-7', labels })
const disk = eventsOf('disk', id('b02'), 'project', { name: 'datasets', labels, operation_id })
const rule = eventsOf('firewall_rule', id('c03'), 'project', { name: 'allow-jupyter', labels, operation_id })
const operation = eventsOf('vm', id('b01'), 'project', { operation_id })
const network = eventsOf('network', id('c01'), 'project', { name: 'lab', labels })
const address = eventsOf('address', id('c04'), 'project', {
  name: 'gateway',
  address: '198.18.3.7',
  location: 'us-east1-a',
  labels,
})
const subnet = eventsOf('subnet', id('c02'), 'project', { name: 'lab-east' })
const project = eventsOf('project', id('a01'), 'project')
/** The recorded response of a creation, without its secret. */
function viewOf(route: RouteId): Record<string, unknown> {
  const { secret, ...view } = { ...(recording.routes[route]?.response as Record<string, unknown>) }
  return view
}
const key = eventsOf('access_key', id('a04'), 'project', viewOf('accessKeyCreate'))
const sshKey = eventsOf('ssh_key', id('a05'), 'project', viewOf('sshKeyCreate'))
const capacityRequest = eventsOf('capacity_request', id('b05'), 'project', {
  ...viewOf('capacityRequestCreate'),
  position: null,
})
const group = eventsOf('instance_group', id('b06'), 'project', { name: 'trainer', labels, operation_id })
const members = { desired_count: 4, generation: 2 }
const template = eventsOf('instance_template', id('b05'), 'project', {
  name: 'trainer',
  version: 1,
  labels: {},
})
const reservation = eventsOf('reservation', id('f01'), 'organization', {
  ...viewOf('adminReservationCreate'),
  price: '',
})
const activeReservation = { state: 'active', delivered_quantity: 16 }
const quotaRequest = eventsOf('quota_request', id('f02'), 'organization', {
  name: 'a100_gpus',
  max: 32,
  reason: 'A training run with 16 GPUs in December',
  note: '',
})
const webhook = eventsOf('webhook', id('d03'), 'project', viewOf('webhookCreate'))
const organization = eventsOf('organization', id('a02'), 'organization')
const member = eventsOf('user', id('a03'), 'organization', { email: 'ada@example.com', role: 'member' })
const user = eventsOf('user', id('a03'), 'service')
const userInOrganization = eventsOf('user', id('a03'), 'organization')
const host = eventsOf('host', id('e01'), 'service', { name: 'us-east1-a-a100-1', location: 'us-east1-a' })
const gpu = eventsOf('gpu', id('e02'), 'service', { pci_address: '0000:17:00.0' })
const image = eventsOf('image', id('e03'), 'service', {
  name: 'ubuntu24.04-nvidia:latest',
  locations: ['us-east1-a', 'eu-north1-a'],
})

const gpuFault = {
  code: 'xid_79',
  gpu_index: 0,
  source: 'host',
  message: 'GPU 0 has fallen off the bus (XID 79).',
  action: 'REPLACE',
  at: '2026-10-30T12:00:00.000Z',
}

/**
 * When each event is sent, with example data. The compiler reports missing types, and a test compares the
 * data with real events.
 */
export const eventFacts: Record<EventType, EventFacts> = {
  'access_key.created': key('An access key was created.'),
  'access_key.revoked': key('An access key was revoked.'),
  'address.assigned': address('A reserved address was assigned to a VM.', { vm_id: id('b01') }),
  'address.created': address('A public address was reserved.'),
  'address.deleted': address('A reserved address was released. It no longer belongs to the project.'),
  'address.unassigned': address('A reserved address was unassigned from its VM, and can be assigned again.', {
    vm_id: id('b01'),
  }),
  'address.updated': address('The name or labels of a reserved address changed.'),
  'billing.meter_disputed': organization('The payment provider reports a different amount for a day.', {
    day: '2026-11-13',
    usd_cents: 3480,
    reason: 'the provider has a different amount',
  }),
  'budget.set': project('A project’s monthly budget was set or changed.', {
    monthly_usd: 2000,
    hard_stop: true,
  }),
  'budget.threshold_reached': project('This month’s cost reached 50%, 80% or 100% of the budget.', {
    name: 'research',
    threshold_percent: 80,
    monthly_usd: 2000,
    spent_usd: 1612.35,
    hard_stop: true,
  }),
  'capacity_request.cancelled': capacityRequest('A capacity request was cancelled.', { state: 'cancelled' }),
  'capacity_request.created': capacityRequest('A capacity request was added to the queue.'),
  'capacity_request.expired': capacityRequest(
    'A capacity request ended because its time limit was reached, or because the GPUs held for it were not claimed.',
    { state: 'expired' },
  ),
  'capacity_request.failed': capacityRequest('GPUs were free, but the VM could not be created or started.', {
    state: 'failed',
    error: { code: 'boot_failed', message: 'The guest did not boot.' },
  }),
  'capacity_request.fulfilled': capacityRequest('The VM of a capacity request is being created or started.', {
    state: 'fulfilled',
    location: 'us-east1-a',
    resource_id: id('b01'),
    operation_id,
  }),
  'capacity_request.held': capacityRequest('GPUs are held for a capacity request.', {
    state: 'held',
    gpus_held: 1,
    location: 'us-east1-a',
    held_until: '2026-10-30T09:16:30.000Z',
  }),
  'capacity_request.requeued': capacityRequest(
    'A capacity request is waiting again, at its old position in the queue, because its GPUs were lost or its VM did not boot.',
  ),
  'capacity_request.updated': capacityRequest('The time limit or the labels of a capacity request changed.'),
  ...copyEvents('custom_image'),
  'disk.available': disk('A disk is available after it was created, resized or detached.'),
  'disk.creating': disk('The creation of a disk was accepted.', {
    ...operationData('CREATE'),
    size: '500GiB',
    location: 'us-east1-a',
    snapshot_id: id('b08'),
  }),
  'disk.deleted': disk('A disk was deleted.'),
  'disk.deleting': disk('The deletion of a disk was accepted.', operationData('DELETE')),
  'disk.deletion_repeated': deletionRepeated('disk', 'b02', 'a disk'),
  'disk.lost': eventsOf(
    'disk',
    id('b02'),
    'project',
  )('An operator declared the host of the disk lost.', {
    name: 'datasets',
    detail: 'its host is lost permanently',
  }),
  'disk.resizing': disk('A disk is being resized.', { ...operationData('RESIZE'), size: '1TiB' }),
  'disk.updated': disk('The name, description, labels or protection of a disk changed.', {
    ...operationData('UPDATE'),
    description: 'Tokenized training data',
    deletion_protection: true,
  }),
  'firewall_rule.active': rule('A rule is in effect on every VM that it applies to.'),
  'firewall_rule.creating': rule('The creation of a rule was accepted.', operationData('CREATE')),
  'firewall_rule.deleted': rule('A rule was deleted and is no longer in effect on any VM.'),
  'firewall_rule.deleting': rule('The deletion of a rule was accepted.', operationData('DELETE')),
  'firewall_rule.deletion_repeated': deletionRepeated('firewall_rule', 'c03', 'a rule'),
  'firewall_rule.updating': rule('A change to a rule was accepted.', operationData('UPDATE')),
  'gpu.check_failed': gpu('A GPU failed its check. It stays in quarantine until it passes a check.', {
    reasons: ['The GPU does not respond.'],
  }),
  'gpu.fault': vmWithoutOperation('A GPU of a VM reported an error, or was lost.', gpuFault),
  'gpu.missing': eventsOf(
    'host',
    id('e01'),
    'service',
  )('A host no longer reports a GPU that a VM uses.', {
    gpu_id: id('e02'),
    pci_address: '0000:17:00.0',
    vm_id: id('b01'),
  }),
  'gpu.returned': gpu('A GPU that had a fault passed its check and is in stock again.'),
  'gpu.updated': gpu('An operator put a GPU into quarantine, or released it from quarantine.', {
    state: 'quarantined',
  }),
  'host.created': host('An operator added a host.'),
  'host.deleted': host('An operator removed a host.'),
  'host.down': host('A host is down: its last report is too old, or its engine reports it as unreachable.'),
  'host.drained': host('A host that is being drained has no VMs left.'),
  'host.draining': eventsOf(
    'host',
    id('e01'),
    'project',
  )('An operator is draining a host on which the project has VMs.', {
    location: 'us-east1-a',
    vm_ids: [id('b01')],
  }),
  'host.forgotten': host('An operator declared a host lost.', {
    vm_ids: [id('b01')],
    disk_ids: [id('b02')],
    capture_ids: [id('b07')],
  }),
  'host.maintenance_cancelled': host('An operator cancelled the maintenance of a host.'),
  'host.maintenance_scheduled': host('An operator scheduled maintenance of a host.', {
    at: '2026-12-01T06:00:00.000Z',
    note: 'New power supplies',
  }),
  'host.up': eventsOf('host', id('e01'), 'service')('A host reports again.', { gpus: 8 }),
  'host.updated': host('An operator cordoned a host, uncordoned it, or changed its note.', {
    schedulable: false,
  }),
  'image.created': image('An operator added an image.'),
  'image.deleted': image('An operator removed an image.'),
  'image.updated': image('An operator changed an image.'),
  'instance_group.creating': group('The creation of a group and all its members was accepted.', {
    ...operationData('CREATE'),
    desired_count: 4,
    location: 'us-east1-a',
  }),
  'instance_group.deleted': group('A group and its members were deleted.', members),
  'instance_group.deleting': group('The deletion of a group was accepted.', operationData('DELETE')),
  'instance_group.deletion_repeated': deletionRepeated('instance_group', 'b06', 'a group'),
  'instance_group.healthy': group('A group has all its members, and none has crashed or is unreachable.', {
    ...members,
    vm_id: id('b01'),
  }),
  'instance_group.unhealthy': group('A member of a group crashed, is unreachable or is missing.', {
    ...members,
    vm_id: id('b01'),
  }),
  'instance_group.updated': group('The template, labels, description or protection of a group changed.', {
    ...operationData('UPDATE'),
    template_id: id('b05'),
    description: 'Fine-tuning run of November',
    deletion_protection: true,
  }),
  'instance_group.updating': group('Members of a group are being added, removed, started or stopped.', {
    ...operationData('UPDATE'),
    desired_count: 8,
    replaced: ['trainer-2'],
  }),
  'instance_template.created': template('An instance template or a version of it was created.'),
  'instance_template.deleted': template('A version of an instance template was deleted.'),
  'invoice.issued': organization('The invoice for a month was issued.', {
    invoice_id: id('a06'),
    month: '2026-10',
    usd: 412.35,
  }),
  'invoice.paid': organization('An invoice was paid.', { invoice_id: id('a06') }),
  'member.accepted': member('An invitation was accepted.'),
  'member.added': member('A user joined the organization.'),
  'member.invited': member('A user was invited.'),
  'member.removed': member('A member left, or was removed.'),
  'member.updated': member('The role of a member changed.'),
  'network.created': network('A network was created.', { cidr: '10.20.0.0/16' }),
  'network.deleted': network('A network was deleted.'),
  'network.updated': network('The name or labels of a network changed.'),
  'operation.abandoned': operation('An operator abandoned a stuck operation.'),
  'operation.failed': operation('An operation failed, and its changes were undone.', {
    ...operationData('CREATE'),
    error: { code: 'engine_error', message: 'The VM did not boot within ten minutes.' },
  }),
  'operation.retried': operation('An operator retried a stuck operation.'),
  'operation.stuck': operation(
    'An operation can neither continue nor be undone, and waits for an operator.',
    { ...operationData('CREATE'), step: 'boot' },
  ),
  'operation.succeeded': operation('An operation succeeded.', operationData('CREATE')),
  'operator.read': eventsOf(
    'organization',
    id('a02'),
    'service',
  )('An operator read the organization’s data.', { route: 'adminVmList' }),
  'organization.alert_recipients_set': organization('The additional recipients of alerts were set.', {
    emails: ['oncall@example.com'],
  }),
  'organization.billing_link_created': organization('A link to the billing page was created.', {
    project_id: id('a01'),
  }),
  'organization.created': organization('An organization was created.', { name: 'Harbour Labs' }),
  'organization.payment_active': organization('The organization has a valid payment method.'),
  'organization.payment_declined': organization('A payment was declined.', { reason: 'card_declined' }),
  'organization.payment_method_removed': organization('A card of the built-in payment provider was removed.'),
  'organization.payment_method_set': organization('A payment method was set.', {
    brand: 'visa',
    last4: '4242',
  }),
  'organization.payment_never': organization(
    'Never sent: no organization can return to the payment state `never`, the state before its first payment method.',
  ),
  'organization.payment_removed': organization(
    'The organization no longer has a payment method. Sent for every payment provider.',
  ),
  'organization.restored': organization('An operator lifted the organization’s suspension.', {
    name: 'Harbour Labs',
    stop_vms: false,
  }),
  'organization.suspended': organization('An operator suspended the organization.', {
    name: 'Harbour Labs',
    stop_vms: true,
  }),
  'organization.updated': organization('The name or two-factor requirement of the organization changed.', {
    name: 'Harbour Labs',
    require_totp: true,
  }),
  'prices.updated': eventsOf(
    'prices',
    '',
    'service',
  )('An operator set prices.', {
    items: [{ product_name: 'a100.1x', unit: 'vm_hour', usd: 1.45 }],
  }),
  'project.created': project('A project was created.', viewOf('projectCreate')),
  'project.deleted': project('A project was deleted.', viewOf('projectCreate')),
  'project.updated': project('The name or labels of a project changed.', viewOf('projectCreate')),
  'quota_request.approved': quotaRequest('An operator approved a request for a higher quota.', {
    note: 'New hosts arrive this week',
  }),
  'quota_request.created': quotaRequest('A higher quota was requested from the operators.'),
  'quota_request.rejected': quotaRequest('An operator rejected a request for a higher quota.', {
    note: 'No more GPUs of this model are planned',
  }),
  'quota_request.withdrawn': quotaRequest('An open request for a higher quota was withdrawn.'),
  'quotas.updated': project('An operator set quotas.', { items: [{ name: 'a100_gpus', max: 32 }] }),
  'reservation.created': reservation('An operator sold a reservation to the organization.'),
  'reservation.delivered': reservation(
    'All GPUs of a reservation are assigned to it. This can happen up to 24 hours before the reservation begins.',
    activeReservation,
  ),
  'reservation.ended': reservation('A reservation ended. Its VMs continue to run, at the list price.', {
    state: 'ended',
  }),
  'reservation.ending': reservation(
    'A reservation ends soon. Sent 30 days, 7 days, 24 hours and 1 hour before it ends.',
    activeReservation,
  ),
  'reservation.short': reservation(
    'A reservation has begun, but some of its GPUs are not delivered. Only delivered GPUs are billed.',
    { state: 'late', delivered_quantity: 8 },
  ),
  'reservation.updated': reservation('The end time or the projects of a reservation changed.'),
  ...copyEvents('snapshot'),
  'ssh_key.created': sshKey('A public key was registered.'),
  'ssh_key.deleted': sshKey('A registered key was removed; VMs that already have the key keep it.'),
  'subnet.created': subnet('A subnet was created.', {
    cidr: '10.20.16.0/20',
    vpc_network_id: id('c01'),
    location: 'us-east1-a',
  }),
  'subnet.deleted': subnet('A subnet was deleted.'),
  'subnet.updated': subnet('The name of a subnet changed.'),
  'user.created': user('An account was created through single sign-on.', {
    email: 'ada@example.com',
    issuer: 'https://login.example.com',
  }),
  'user.identity_linked': user('A single sign-on identity was linked.', { provider: 'example' }),
  'user.identity_unlinked': user('A single sign-on identity was unlinked.', { provider: 'example' }),
  'user.invited': userInOrganization('An operator invited a user.', {
    email: 'ada@example.com',
    role: 'owner',
  }),
  'user.operator_granted': user('A user became an operator.', { email: 'ada@example.com' }),
  'user.operator_removed': user('A user is no longer an operator.', { email: 'ada@example.com' }),
  'user.password_changed': user('A user changed their password.'),
  'user.password_reset': user('A user set a new password with a reset code.'),
  'user.refresh_token_reused': userInOrganization(
    'A refresh token was used a second time, and its session was ended.',
  ),
  'user.reset_mailed': user('A password reset code was sent to a user by e-mail.'),
  'user.reset_offered': user('An operator created a password reset code for a user.', {
    email: 'ada@example.com',
  }),
  'user.restored': user('An operator restored a suspended user.', { email: 'ada@example.com' }),
  'user.session_ended': user('A user’s session was ended, or all sessions if `session_id` is empty.', {
    session_id: id('a07'),
  }),
  'user.setup': user('The first operator’s account was created with the setup code.'),
  'user.sign_in_failed': userInOrganization('A sign-in failed.', { reason: 'password' }),
  'user.signed_in': user('A user signed in.', { provider: 'example' }),
  'user.signed_out': user('A user signed out.'),
  'user.suspended': user('An operator suspended a user.', { email: 'ada@example.com' }),
  'user.totp_enabled': user('A user set up two-factor authentication.'),
  'user.totp_removed': user('Two-factor authentication was removed from a user.', {
    email: 'ada@example.com',
  }),
  'user.updated': user('An operator changed a user.', { email: 'ada@example.com' }),
  'vm.attaching_disks': vm('Disks are being attached.', {
    ...operationData('ATTACH'),
    disk_ids: [id('b02')],
  }),
  'vm.console_closed': vmWithoutOperation('A session on the serial console of a VM ended.', {
    session_id: id('d04'),
    mode: 'write',
    input_bytes: 214,
    output_bytes: 70_112,
  }),
  'vm.console_opened': vmWithoutOperation('A session on the serial console of a VM began.', {
    session_id: id('d04'),
    mode: 'write',
  }),
  'vm.crashed': vmWithoutOperation('A VM stopped running unexpectedly.', {
    detail: 'the guest powered off by itself',
  }),
  'vm.creating': vm('The creation of a VM was accepted, and its resources are reserved.', {
    ...operationData('CREATE'),
    type: 'a100.1x',
    location: 'us-east1-a',
  }),
  'vm.deleted': vm(
    'A VM was deleted. Its GPUs, name and addresses are free again, except reserved addresses.',
  ),
  'vm.deleting': vm('The deletion of a VM was accepted.', operationData('DELETE')),
  'vm.deletion_repeated': deletionRepeated('vm', 'b01', 'a VM'),
  'vm.detaching_disks': vm('Disks are being detached.', {
    ...operationData('DETACH'),
    disk_ids: [id('b02')],
  }),
  'vm.expiring': vmWithoutOperation('The time to live of a VM ends soon.', {
    expires_at: '2026-10-30T13:00:00.000Z',
    on_expiry: 'delete',
  }),
  'vm.health_changed': vmWithoutOperation(
    'The GPU health of a VM changed. If the host reports a GPU of the VM as lost, the VM is not billed from `billing_paused_at` on, for at most 24 hours, or one hour if other GPUs are in stock.',
    {
      status: 'unhealthy',
      reasons: [gpuFault],
      billing_paused_at: '2026-10-30T12:00:00.000Z',
    },
  ),
  'vm.host_draining': vmWithoutOperation('The host of a VM is being drained. The VM continues to run.', {
    location: 'us-east1-a',
  }),
  'vm.idle': vmWithoutOperation('All GPUs of a VM have been idle for as long as its idle policy specifies.', {
    idle_since: '2026-10-30T11:00:00.000Z',
  }),
  'vm.idle_stopping': vmWithoutOperation('A VM is idle and will be stopped, unless it becomes busy first.', {
    idle_since: '2026-10-30T11:00:00.000Z',
    stops_at: '2026-10-30T12:10:00.000Z',
  }),
  'vm.idle_unknown': vmWithoutOperation(
    'The guest of a VM with an idle policy does not report its GPU utilization, so the VM is not stopped.',
    { window_seconds: 3600 },
  ),
  'vm.maintenance_cancelled': vmWithoutOperation('The maintenance of a VM’s host was cancelled.'),
  'vm.maintenance_scheduled': vmWithoutOperation(
    'Maintenance of a VM’s host is scheduled. Sent 7 days, 24 hours and 1 hour before it begins.',
    { maintenance_at: '2026-12-01T06:00:00.000Z', note: 'New power supplies', location: 'us-east1-a' },
  ),
  'vm.os_disk_found': vmWithoutOperation('The host has the OS disk of a VM again.'),
  'vm.os_disk_lost': vmWithoutOperation('The host no longer has the OS disk of a VM. The VM is not billed.', {
    detail: 'its host no longer has its OS disk',
  }),
  'vm.replace_failed': vm('A VM did not start on its new GPUs. It is stopped.'),
  'vm.replaced': vm('A VM was moved to other GPUs and is running.'),
  'vm.resetting': vm('A VM is being reset.', operationData('RESET')),
  'vm.running': vm('A VM is running, and is billed from this time on.'),
  'vm.shutoff': vm('A VM is stopped.'),
  'vm.starting': vm('A VM is being started.', operationData('START')),
  'vm.stopping': vm('A VM is being stopped.', operationData('STOP')),
  'vm.unreachable': vmWithoutOperation('The host of a VM does not respond.', {
    detail: 'its host stopped reporting',
  }),
  'vm.updated': vm(
    'The type, time to live, idle policy, name, description, labels or protection of a VM changed.',
    {
      ...operationData('UPDATE'),
      type: 'a100.2x',
      ttl_seconds: 14400,
      on_expiry: 'stop',
      idle_policy: { window_seconds: 3600, min_gpu_utilization: 5, action: 'stop', ignore_ssh: false },
      description: 'Fine-tuning',
      deletion_protection: true,
    },
  ),
  'vm.updating': vm('A change to a VM was accepted.', {
    ...operationData('UPDATE'),
    type: 'a100.2x',
    ttl_seconds: 14400,
    on_expiry: 'stop',
    address_id: id('c04'),
  }),
  'webhook.created': webhook('A webhook was created.'),
  'webhook.deleted': webhook('A webhook was deleted.'),
  'webhook.paused': webhook('A webhook was paused because no delivery has succeeded for three days.', {
    state: 'paused',
    failing_since: '2026-10-31T09:00:00.000Z',
    reason: 'No delivery has succeeded for three days.',
  }),
  'webhook.replayed': webhook('A delivery was sent again.', { delivery_id: id('d05') }),
  'webhook.secret_rotated': webhook('A webhook has a new secret.'),
  'webhook.test': webhook('A user tested the webhook; only this webhook receives the event.'),
  'webhook.updated': webhook('The URL, events or state of a webhook changed.'),
}
