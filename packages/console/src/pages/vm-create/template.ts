import type { InstanceTemplate, VmCreate } from '@slipway/sdk'
import { plural, sizeText } from '../../lib/format.ts'
import type { Problem } from './problem.tsx'

/** Values that clear a template's values. */
const empty: Partial<VmCreate> = {
  ssh_key_ids: [],
  startup_script: '',
  shutdown_script: '',
  disks: [],
  public_ip: 'dynamic',
  labels: {},
  deletion_protection: false,
}

/** Fields of a template that the form does not show. New VMs get the values that the template has. */
const hiddenFields = ['new_disks', 'os_disk_size', 'description', 'reservation_specification'] as const

/** Returns a request that creates the VM from a template. It contains only values that differ from the template. */
export function requestFromTemplate(request: VmCreate, template: InstanceTemplate): VmCreate {
  const isSame = (member: keyof VmCreate) =>
    JSON.stringify(request[member]) === JSON.stringify(template[member as keyof InstanceTemplate])
  const removed = Object.entries(empty).filter(
    ([member]) => template[member as keyof InstanceTemplate] !== undefined && !(member in request),
  )
  const changed = Object.entries(request).filter(
    ([member]) => member === 'name' || !isSame(member as keyof VmCreate),
  )
  return {
    ...(Object.fromEntries([...removed, ...changed]) as VmCreate),
    instance_template_id: template.id,
  }
}

/** Returns a problem if the request removes a template value that can only be replaced; otherwise null. */
export function templateProblem(request: VmCreate, template: InstanceTemplate | undefined): Problem | null {
  if (template?.ssh_public_key && !request.ssh_public_key)
    return { text: 'The template has an SSH public key, which you can replace but not remove', part: 'key' }
  if (template?.ttl_seconds && !request.ttl_seconds)
    return {
      text: 'VMs from this template expire. You can change the time, but not remove the expiry',
      part: 'ttl',
    }
  return null
}

/** Returns the fields of a template with the values of the form. */
export const templateFieldsOf = (
  { name: _, ...request }: VmCreate,
  template: InstanceTemplate | undefined,
): Omit<VmCreate, 'name'> => ({
  ...Object.fromEntries(
    hiddenFields.flatMap((member) => (template?.[member] === undefined ? [] : [[member, template[member]]])),
  ),
  ...request,
})

/** Describes what new VMs take from the template in addition to the form's fields. */
export function hiddenText({ new_disks, os_disk_size, description }: InstanceTemplate): string {
  const parts = [
    new_disks?.length &&
      `${plural(new_disks.length, 'new disk')} (${new_disks.map(({ size }) => sizeText(size)).join(', ')})`,
    os_disk_size && `an OS disk of ${sizeText(os_disk_size)}`,
    description && `the description “${description}”`,
  ].filter(Boolean)
  return parts.length === 0 ? '' : `Also from the template: ${parts.join(', ')}.`
}
