import { cidrContains } from '@slipway/contract/cidr'
import { isResourceName, isUuid, parseSshDestination, type SshDestination } from '@slipway/contract/names'
import type { Vm } from '@slipway/sdk'
import { CliError, exitCodes } from '../../errors/cli-error.ts'

type SshVm = Pick<Vm, 'id' | 'name' | 'ssh_destination'>

/**
 * Returns the SSH destination, or undefined while the VM cannot be reached. The id and the name become part
 * of ssh's arguments and configuration, where malicious text could run programs on this computer, so both are
 * validated.
 */
export function sshDestination({ id, name, ssh_destination }: SshVm): SshDestination | undefined {
  if (ssh_destination === '') return undefined
  const destination = parseSshDestination(ssh_destination)
  if (destination && isUuid(id) && isResourceName(name)) return destination
  throw new CliError(
    'unexpected_answer',
    `The service sent VM details that are not safe to pass to ssh: ${JSON.stringify({ id, name, ssh_destination })}.`,
    exitCodes.error,
    ['Expected: an id, a name, and user@address or user@address:port.'],
  )
}

/** The default simulated locations take their addresses from this block, which no real machine uses. */
const simulatedBlock = '198.18.0.0/15'

export const isSimulated = ({ host }: SshDestination): boolean => cidrContains(simulatedBlock, host)

/** The format of the service's host key lines. It excludes everything that ssh or a shell would interpret. */
const hostKeyLine = /^\S+ (ssh-ed25519 [A-Za-z0-9+/]+={0,2})$/

/**
 * Host keys are stored by VM id, not by address, because addresses are reused. If the service created the
 * VM's key, only that key is accepted. If the guest created its own key, the key is stored at the first
 * connection, and a different key is rejected later.
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

/** Returns the arguments for the destination. ssh does not treat anything after `--` as an option. */
export function sshArguments({ user, host, port }: SshDestination): string[] {
  return ['-p', String(port), '--', `${user}@${host}`]
}

/** Returns the command to connect to a running VM, or the reason why SSH is not possible. */
export function howToConnect(vm: SshVm): string {
  const destination = sshDestination(vm)
  if (!destination) return `${vm.name} is running; it has no public address.`
  if (isSimulated(destination))
    return `${vm.name} is running. It is simulated: there is no machine behind it, so SSH does not connect.`
  const { user, host, port } = destination
  return `ssh ${port === 22 ? '' : `-p ${port} `}${user}@${host}`
}
