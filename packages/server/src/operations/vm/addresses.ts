import { randomInt } from 'node:crypto'
import { parseCidr } from '@slipway/contract'
import { numberToAddress, usableRange } from '../../domain/addresses.ts'
import { outOfStock } from '../../domain/failure.ts'
import type { Tx } from '../../postgres/database.ts'
import { gathered, type OwnResult } from '../../postgres/gathered.ts'
import { retryAlone } from '../../postgres/transaction.ts'
import type { LocationRow } from '../../store/fleet/locations.ts'
import { type AddressRange, findFreeAddresses, findFreePublicAddress } from '../../store/network/addresses.ts'

const candidatesPerRange = 16

interface AddressRequest {
  subnet: { network_id: string; cidr: string }
  location: { name: string; public_ipv4: string | null }
  hasPublicAddress: boolean
}

export interface Addresses {
  privateAddress: string
  publicAddress: string | null
}

/**
 * Finds free addresses for a VM among random candidates, so that creations do not contend for the same ones.
 * A nearly full pool needs an exact search, which a request makes outside a batch. Unique indexes prevent
 * duplicate addresses.
 */
export const pickAddresses = gathered(
  async (tx: Tx, requests: AddressRequest[]): Promise<OwnResult<Addresses>[]> => {
    const ranges = requests.map(({ subnet, location: { public_ipv4 }, hasPublicAddress }) => ({
      networkId: subnet.network_id,
      inside: rangeOf(usableRange(subnet.cidr)),
      outside: hasPublicAddress && public_ipv4 !== null ? rangeOf(publicRange(public_ipv4)) : null,
    }))
    const found = await findFreeAddresses(tx, ranges, tx.mayWait)
    return requests.map((request, index) => {
      const { privateAddress, publicAddress } = found[index]!
      const lacksPublic = request.hasPublicAddress && !publicAddress
      if (privateAddress && !lacksPublic) return { privateAddress, publicAddress }
      if (!tx.mayWait) return retryAlone('an exact search for addresses is needed')
      return outOfStock(
        privateAddress
          ? `${request.location.name} has no free public address (out of stock). Use public_ip "none".`
          : `The subnet ${request.subnet.cidr} has no free address (out of stock). Use another subnet.`,
      )
    })
  },
)

/** Finds a free public address of a location. Throws a 409 if there is none. */
export async function pickPublicAddress(
  tx: Tx,
  { name, public_ipv4 }: Pick<LocationRow, 'name' | 'public_ipv4'>,
): Promise<string> {
  const found = public_ipv4 && (await findFreePublicAddress(tx, rangeOf(publicRange(public_ipv4))))
  if (!found) throw outOfStock(`${name} has no free public address (out of stock).`)
  return found
}

/** The first and the last address of a pool are its network and broadcast addresses. */
function publicRange(pool: string) {
  const { base, prefix } = parseCidr(pool)!
  return { first: base + 1, last: base + 2 ** (32 - prefix) - 2 }
}

function rangeOf({ first, last }: { first: number; last: number }): AddressRange {
  const randomAddress = () => numberToAddress(randomInt(first, last + 1))
  const candidates = Array.from({ length: candidatesPerRange }, randomAddress)
  return { candidates, first: numberToAddress(first), count: last - first + 1 }
}
