import { cidrContains } from '@slipway/contract/cidr'
import { isResourceName, isUuid, parseSshDestination, type SshDestination } from '@slipway/contract/names'
import type { Vm } from '@slipway/sdk'
import { CliError, exitCodes } from '../../errors/cli-error.ts'

type SshVm = Pick<Vm, 'id' | 'name' | 'ssh_destination'>

/**
 * Returns where SSH answers, or undefined while the VM cannot be reached. The id and the name go into ssh's arguments
 * and configuration as well, where other text than the service normally sends could run programs on this computer.
 */
export function sshDestination({ id, name, ssh_destination }: SshVm): SshDestination | undefined {
  if (ssh_destination === '') return undefined
  const destination = parseSshDestination(ssh_destination)
  if (destination && isUuid(id) && isResourceName(name)) return destination
  throw new CliError(
    'unexpected_answer',
    `The service sent a VM that is not safe to pass to ssh: ${JSON.stringify({ id, name, ssh_destination })}.`,
    exitCodes.error,
    ['Expected: an id, a name, and user@address or user@address:port.'],
  )
}

/** The simulated engine takes its addresses from here; no machine has them. */
const simulatedBlock = '198.18.0.0/15'

export const isSimulated = ({ host }: SshDestination): boolean => cidrContains(simulatedBlock, host)

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

/** The arguments that name the destination. Nothing behind `--` is taken for an option. */
export function sshArguments({ user, host, port }: SshDestination): string[] {
  return ['-p', String(port), '--', `${user}@${host}`]
}

/** Says how to reach a VM that runs: the command to type, or why there is none. */
export function howToConnect(vm: SshVm): string {
  const destination = sshDestination(vm)
  if (!destination) return `${vm.name} is running; it has no public address.`
  if (isSimulated(destination))
    return `${vm.name} is running. It is simulated: there is no machine behind it, so SSH does not connect.`
  const { user, host, port } = destination
  return `ssh ${port === 22 ? '' : `-p ${port} `}${user}@${host}`
}
