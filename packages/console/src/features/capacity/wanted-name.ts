/** The parts of a capacity request’s `request` that name what it is waiting for. */
export interface WantedRequest {
  vm?: { name?: string }
  instance_group?: { name?: string }
  start_vm_id?: string
  replace_vm_id?: string
}

/** Returns the name of the VM or group that a capacity request is waiting for, if it is known. */
export function wantedName(
  request: WantedRequest,
  nameOf: (vmId: string) => string | undefined,
): string | undefined {
  const { vm, instance_group, start_vm_id, replace_vm_id } = request
  return vm?.name ?? instance_group?.name ?? nameOf(start_vm_id ?? replace_vm_id ?? '')
}
