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

/** A line as the service makes them; nothing in it means anything to ssh or a shell. */
const hostKeyLine = /^\S+ (ssh-ed25519 [A-Za-z0-9+/]+={0,2})$/

/**
 * A host key belongs to the VM, since its address goes on to others. The service knows the key of a VM that it gave one:
 * that one alone is accepted, from the first connection on. Of a guest that made its own, new keys are kept and changed
 * ones refused.
 */
export function hostKeyRules(vm: Pick<Vm, 'id' | 'ssh_host_keys'>): [option: string, value: string][] {
  const alias = `slipway-${vm.id}`
  const keys = (vm.ssh_host_keys ?? []).flatMap((line) => hostKeyLine.exec(line)?.[1] ?? [])
  if (keys[0] === undefined)
    return [
      ['HostKeyAlias', alias],
      ['StrictHostKeyChecking', 'accept-new'],
    ]
  return [
    ['HostKeyAlias', alias],
    ['KnownHostsCommand', `/bin/echo ${alias} ${keys[0]}`],
    ['UserKnownHostsFile', 'none'],
    ['StrictHostKeyChecking', 'yes'],
  ]
}

export function sshArguments({ user, host, port }: SshDestination): string[] {
  return [...(port === 22 ? [] : ['-p', String(port)]), `${user}@${host}`]
}

export function sshCommandLine(vm: Pick<Vm, 'ssh_destination'>): string {
  const destination = sshDestination(vm)
  return destination ? ['ssh', ...sshArguments(destination)].join(' ') : ''
}
