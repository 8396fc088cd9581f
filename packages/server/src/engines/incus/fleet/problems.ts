import { diskIdsOf, type Instance, instanceName, marks } from '../instances.ts'

const maxProblems = 20

/** Lists manual changes to our instances that cause problems, each with what an operator can do about it. */
export function problemsOf(instances: Instance[]): string[] {
  return instances
    .flatMap((instance) => [...nameProblems(instance), ...deviceProblems(instance)])
    .slice(0, maxProblems)
}

/** Slipway finds the instance of a VM only by its name. */
function nameProblems({ name, config }: Instance): string[] {
  const id = config[marks.id]!
  const expected = instanceName(id)
  if (name === expected) return []
  return [
    `the configuration of the instance ${name} has the id of VM ${id} (${marks.id}): if it was renamed, stop it and run incus rename ${name} ${expected}; if it is a copy, run incus config unset ${name} ${marks.id}`,
  ]
}

function deviceProblems(instance: Instance): string[] {
  const { name, config, devices } = instance
  if (name !== instanceName(config[marks.id]!)) return []
  const missing = ['root', 'eth0'].filter((device) => !(device in devices))
  const attached = diskIdsOf(instance)
  const disks = (config[marks.disks] ?? '').split(' ').filter((id) => id !== '' && !attached.includes(id))
  return [
    ...missing.map(
      (device) =>
        `the device ${device} of ${name} was removed: stop and start the VM in Slipway to restore it`,
    ),
    ...disks.map((id) => `the disk ${id} was removed from ${name}: detach it in Slipway and attach it again`),
  ]
}
