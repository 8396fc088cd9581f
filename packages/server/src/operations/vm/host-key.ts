import { type HostKey, newHostKey } from '../../domain/guest/host-key.ts'
import { openSecret, sealSecret } from '../../domain/secret-key.ts'
import type { Work } from '../../runner/operation.ts'
import { giveVmHostKey } from '../../store/compute/vm-changes.ts'
import type { VmEngineRow } from '../../store/compute/vms.ts'
import { vmGone } from './vm.ts'

/**
 * What the guest will prove its name by. It is made before the engine first hears of the VM, and kept sealed until the
 * guest has it: another worker that takes the creation up gives the guest the same one. A simulated guest proves nothing.
 */
export async function hostKeyOf({ services, operation }: Work, vm: VmEngineRow): Promise<HostKey | null> {
  if (operation.name !== 'CREATE' || vm.engine === 'simulated')
    return vm.ssh_host_key === '' ? null : { publicKey: vm.ssh_host_key, privateKey: '' }
  const made = vm.ssh_host_key === '' ? newHostKey() : null
  const stored = made
    ? await giveVmHostKey(
        services.database,
        vm.id,
        made.publicKey,
        sealSecret(services.secretKey, made.privateKey),
      )
    : vm
  if (!stored) throw vmGone()
  const sealed = stored.ssh_host_key_sealed
  return {
    publicKey: stored.ssh_host_key,
    privateKey: sealed ? openSecret(services.secretKey, sealed) : '',
  }
}
