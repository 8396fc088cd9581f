import type { ResourceNoun } from '../core/command.ts'
import type { Resolvable } from '../core/resource.ts'
import { addresses } from './address/resource.ts'
import { hosts } from './admin/host/resource.ts'
import { users } from './admin/user/resource.ts'
import { customImages } from './custom-image/resource.ts'
import { disks } from './disk/resource.ts'
import { firewallRules } from './firewall/resource.ts'
import { groups } from './group/resource.ts'
import { images } from './image/resource.ts'
import { accessKeys } from './key/resource.ts'
import { locations } from './location/resource.ts'
import { members } from './member/resource.ts'
import { networks } from './network/resource.ts'
import { operations } from './operation/resource.ts'
import { organizations } from './org/resource.ts'
import { projects } from './project/resource.ts'
import { capacityRequests } from './queue/resource.ts'
import { reservations } from './reservation/resource.ts'
import { snapshots } from './snapshot/resource.ts'
import { sshKeys } from './ssh-key/resource.ts'
import { subnets } from './subnet/resource.ts'
import { templates } from './template/resource.ts'
import { vms } from './vm/resource.ts'
import { webhooks } from './webhook/resource.ts'

/** Completion and the tools for agents use this to find a resource of any kind by its name. */
export const resources: Record<ResourceNoun, Resolvable<object>> = {
  vm: vms,
  template: templates,
  group: groups,
  disk: disks,
  snapshot: snapshots,
  'custom-image': customImages,
  network: networks,
  subnet: subnets,
  address: addresses,
  firewall: firewallRules,
  key: accessKeys,
  'ssh-key': sshKeys,
  member: members,
  project: projects,
  org: organizations,
  webhook: webhooks,
  image: images,
  location: locations,
  operation: operations,
  queue: capacityRequests,
  reservation: reservations,
  host: hosts,
  user: users,
}
