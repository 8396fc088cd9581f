import type { Vm } from '@slipway/sdk'

export interface SshDestination {
  user: string
  host: string
  port: number
}

/** Reads `user@address` or `user@address:port`; returns undefined while the VM cannot be reached. */
export function sshDestination(vm: Pick<Vm, 'ssh_destination'>): SshDestination | undefined {
  const match = /^([^@]+)@([^:]+)(?::(\d+))?$/.exec(vm.ssh_destination)
  if (!match) return undefined
  return { user: match[1]!, host: match[2]!, port: Number(match[3] ?? 22) }
}

/** A host key belongs to the VM, since its address goes on to others: new keys are kept, changed ones refused. */
export const hostKeyRules = (vm: Pick<Vm, 'id'>): [option: string, value: string][] => [
  ['HostKeyAlias', `slipway-${vm.id}`],
  ['StrictHostKeyChecking', 'accept-new'],
]

export function sshArguments({ user, host, port }: SshDestination): string[] {
  return [...(port === 22 ? [] : ['-p', String(port)]), `${user}@${host}`]
}

export function sshCommandLine(vm: Pick<Vm, 'ssh_destination'>): string {
  const destination = sshDestination(vm)
  return destination ? ['ssh', ...sshArguments(destination)].join(' ') : ''
}
