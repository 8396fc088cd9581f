import type { Vm } from '@slipway/sdk'
import { hostKeyRules, sshDestination } from '../vm/ssh-destination.ts'

export interface ExportOptions {
  identity: string
  name: string
}

interface ReachableVm {
  vm: Vm
  user: string
  host: string
  port: number
}

/** Returns the VMs that can be reached, sorted by name, so that the file changes only when the VMs do. */
function reachableVms(vms: Vm[]): ReachableVm[] {
  return vms
    .flatMap((vm) => {
      const destination = vm.state === 'STATE_RUNNING' ? sshDestination(vm) : undefined
      return destination ? [{ vm, ...destination }] : []
    })
    .sort((one, other) => one.vm.name.localeCompare(other.vm.name))
}

/** Writes a file for `Include` in ~/.ssh/config. */
export function sshConfig(vms: Vm[], { identity }: ExportOptions): string {
  const hosts = reachableVms(vms).map(({ vm, user, host, port }) =>
    [
      `Host ${vm.name}`,
      `  HostName ${host}`,
      `  User ${user}`,
      `  Port ${port}`,
      `  IdentityFile ${identity}`,
      ...hostKeyRules(vm).map(([option, value]) => `  ${option} ${value}`),
    ].join('\n'),
  )
  return `${['# Written by `slipway export ssh-config`', ...hosts].join('\n\n')}\n`
}

/** Writes an SSH fleet for `dstack apply -f`. */
export function dstackFleet(vms: Vm[], { identity, name }: ExportOptions): string {
  const hosts = reachableVms(vms).flatMap(({ user, host, port }) => [
    `    - hostname: ${host}`,
    ...(port === 22 ? [] : [`      port: ${port}`]),
    `      user: ${user}`,
  ])
  return `${[
    '# Written by `slipway export dstack`',
    'type: fleet',
    `name: ${name}`,
    'ssh_config:',
    `  identity_file: ${identity}`,
    hosts.length > 0 ? '  hosts:' : '  hosts: []',
    ...hosts,
  ].join('\n')}\n`
}

/**
 * Writes node pools for ~/.sky/ssh_node_pools.yaml. The format has no port, so a host with a port other than
 * 22 is listed by its name in the SSH config.
 */
export function skypilotPools(vms: Vm[], { identity, name }: ExportOptions): string {
  const hosts = reachableVms(vms).flatMap(({ vm, user, host, port }) =>
    port === 22
      ? [`    - ip: ${host}`, `      user: ${user}`, `      identity_file: ${identity}`]
      : [`    - ${vm.name} # port ${port} is set by \`slipway export ssh-config\``],
  )
  return `${[
    '# Written by `slipway export skypilot`',
    `${name}:`,
    hosts.length > 0 ? '  hosts:' : '  hosts: []',
    ...hosts,
  ].join('\n')}\n`
}
