/** A group as one of its members sees it. */
export interface Rendezvous {
  id: string
  name: string
  generation: number
  rank: number
  /** In the order of their ranks. */
  members: { name: string; address: string; hostKey: string }[]
}

/** VM names may contain underscores, but host names may not. */
const hostNameOf = (name: string) => name.replaceAll('_', '-').replace(/-+$/, '')

/**
 * Returns the environment variables that the programs of a group use to find each other. Names and addresses
 * need no shell quoting.
 */
export function groupEnvironment({ id, name, generation, rank, members }: Rendezvous): string {
  const head = members[0]?.address ?? ''
  const values = {
    SLIPWAY_GROUP_ID: id,
    SLIPWAY_GROUP_NAME: name,
    SLIPWAY_GROUP_SIZE: members.length,
    SLIPWAY_GROUP_RANK: rank,
    SLIPWAY_GROUP_HEAD_ADDRESS: head,
    SLIPWAY_GROUP_ADDRESSES: members.map(({ address }) => address).join(','),
    SLIPWAY_GROUP_GENERATION: generation,
    MASTER_ADDR: head,
    NNODES: members.length,
    NODE_RANK: rank,
  }
  return Object.entries(values)
    .map(([variable, value]) => `${variable}=${value}\n`)
    .join('')
}

/** Lines for `/etc/hosts`. */
export const groupHosts = ({ members }: Rendezvous): string =>
  members.map(({ name, address }) => `${address} ${hostNameOf(name)}\n`).join('')

/** Lines for a `known_hosts` file, with the name and the address of each member. */
export const groupKnownHosts = ({ members }: Rendezvous): string =>
  members
    .filter(({ hostKey }) => hostKey !== '')
    .map(({ name, address, hostKey }) => `${hostNameOf(name)},${address} ${hostKey}\n`)
    .join('')
