import type { InstanceGroup, InstanceTemplate } from '@slipway/contract'
import {
  type Members,
  memberOf,
  noInfiniBand,
  noNvlink,
  refuseUnsupported,
  withoutEmpty,
} from '../members.ts'
import { inGib } from './disks.ts'
import { inSeconds } from './time.ts'

export const groupShape = (group: InstanceGroup) => ({
  ...group,
  created_at: inSeconds(group.created_at),
  updated_at: inSeconds(group.updated_at),
})

/** Marks a template whose VMs get a reserved address. Slipway's own templates have no field for this. */
const staticLabel = { 'public-ip': 'static' }
export const isStatic = ({ labels }: Pick<InstanceTemplate, 'labels'>): boolean =>
  labels?.['public-ip'] === 'static'

/** Members that are not set are empty strings. */
export const templateShape = (template: InstanceTemplate) => ({
  id: template.id,
  name: template.name,
  project_id: template.project_id,
  created_at: inSeconds(template.created_at),
  type: template.type ?? '',
  image_name: template.image ?? '',
  custom_image_name: template.custom_image ?? '',
  location: template.location === 'any' ? '' : (template.location ?? ''),
  subnet_id: template.subnet_id ?? '',
  ssh_public_key: template.ssh_public_key ?? '',
  startup_script: template.startup_script ?? '',
  shutdown_script: template.shutdown_script ?? '',
  placement_policy: template.placement_policy ?? 'unspecified',
  public_ip_address_type: isStatic(template) ? 'static' : (template.public_ip ?? 'dynamic'),
  reservation_id: String(memberOf(template.reservation_specification, 'id') ?? ''),
  disks: (template.new_disks ?? []).map(({ size, type = 'persistent-ssd' }) => ({ size: inGib(size), type })),
  ib_partition_id: '',
  transport_partition_id: '',
  nvlink_domain_id: '',
  maintenance_policy: '',
})

/** Image names are stored as clients send them, so that clients read back what they wrote. */
export function templateFields(template: Members): Members {
  refuseUnsupported(template, {
    ib_partition_id: noInfiniBand,
    transport_partition_id: noInfiniBand,
    nvlink_domain_id: noNvlink,
  })
  const { public_ip_address_type: address, reservation_id, disks } = template
  return withoutEmpty({
    name: template.template_name,
    type: template.type,
    image: template.image_name,
    custom_image: template.custom_image_name,
    location: template.location,
    subnet_id: template.subnet_id,
    ssh_public_key: template.ssh_public_key,
    startup_script: template.startup_script,
    shutdown_script: template.shutdown_script,
    placement_policy: template.placement_policy,
    public_ip: address === 'static' ? undefined : address,
    labels: address === 'static' ? staticLabel : undefined,
    reservation_specification: reservation_id ? { id: reservation_id } : undefined,
    new_disks: Array.isArray(disks)
      ? disks.map((disk) => withoutEmpty({ size: memberOf(disk, 'size'), type: memberOf(disk, 'type') }))
      : disks,
  })
}
