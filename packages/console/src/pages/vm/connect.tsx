import type { Vm } from '@slipway/sdk'
import { isSimulatedAddress, publicAddressOf } from '../../lib/addresses.ts'
import { sshCommands } from '../../lib/guest-commands.ts'
import { CommandTabs } from '../../ui/commands.tsx'

/** Shows how to reach the VM, or why it cannot be reached. */
export function Connect({ vm }: { vm: Vm }) {
  const why = noSshReason(vm)
  if (why) return <p className="card flex min-h-11 items-center px-4 py-2 text-ink-muted">{why}</p>
  return <CommandTabs label="Connect" lines={sshCommands(vm)} />
}

function noSshReason(vm: Vm): string {
  const address = publicAddressOf(vm)
  if (isSimulatedAddress(address)) return 'This simulated VM has no SSH.'
  if (vm.ssh_destination) return ''
  if (vm.state === 'STATE_CREATING' || vm.state === 'STATE_STARTING')
    return 'The SSH command appears here when the VM is reachable.'
  return address
    ? 'SSH is not available because the VM is not running.'
    : 'The VM has no public address. Connect from a VM in the same network to its private address.'
}
