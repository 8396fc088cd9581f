import { newHostKey } from '../../domain/guest/host-key.ts'
import type { Rendezvous } from '../../domain/guest/rendezvous.ts'
import { sealSecret } from '../../domain/secret-key.ts'
import type { Work } from '../../runner/operation.ts'
import { findGroup } from '../../store/compute/instance-groups.ts'
import { giveVmHostKey } from '../../store/compute/vm-changes.ts'
import type { VmEngineRow } from '../../store/compute/vms.ts'

/**
 * Returns what a starting member of a group needs to know about all members; null for VMs without a group.
 * The first member to start also creates the host keys of all new members, so that each gets the keys of all.
 */
export async function rendezvousOf({ services }: Work, vm: VmEngineRow): Promise<Rendezvous | null> {
  const { database, secretKey } = services
  const group = vm.group_id === null ? undefined : await findGroup(database, vm.project_id, vm.group_id)
  if (!group) return null
  const living = group.members.filter(({ state }) => state !== 'STATE_DELETING')
  const keyOf = async ({ id, state, ssh_host_key }: (typeof living)[number]): Promise<string> => {
    if (ssh_host_key !== '' || state !== 'STATE_CREATING' || vm.engine === 'simulated') return ssh_host_key
    const { publicKey, privateKey } = newHostKey()
    const given = await giveVmHostKey(database, id, publicKey, sealSecret(secretKey, privateKey))
    return given?.ssh_host_key ?? ''
  }
  return {
    id: group.id,
    name: group.name,
    generation: group.generation,
    rank: living.findIndex(({ id }) => id === vm.id),
    members: await Promise.all(
      living.map(async (member) => ({
        name: member.name,
        address: member.private_address,
        hostKey: await keyOf(member),
      })),
    ),
  }
}
