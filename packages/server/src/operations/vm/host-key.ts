import { type HostKey, newHostKey } from '../../domain/guest/host-key.ts'
import { openSecret, sealSecret } from '../../domain/secret-key.ts'
import type { Work } from '../../runner/operation.ts'
import { giveVmHostKey } from '../../store/compute/vm-changes.ts'
import type { VmEngineRow } from '../../store/compute/vms.ts'
import { vmNotFound } from './vm.ts'

/**
 * Returns the SSH host key of the guest. It is stored encrypted before the first engine call, so that another
 * worker that resumes the creation gives the guest the same key. Simulated guests have none.
 */
export async function hostKeyOf({ services, operation }: Work, vm: VmEngineRow): Promise<HostKey | null> {
  if (operation.name !== 'CREATE' || vm.engine === 'simulated')
    return vm.ssh_host_key === '' ? null : { publicKey: vm.ssh_host_key, privateKey: '' }
  const { database, secretKey } = services
  const store = ({ publicKey, privateKey }: HostKey) =>
    giveVmHostKey(database, vm.id, publicKey, sealSecret(secretKey, privateKey))
  const stored = vm.ssh_host_key === '' ? await store(newHostKey()) : vm
  if (!stored) throw vmNotFound()
  const sealed = stored.ssh_host_key_sealed
  return { publicKey: stored.ssh_host_key, privateKey: sealed ? openSecret(secretKey, sealed) : '' }
}
