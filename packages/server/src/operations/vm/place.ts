import { type OpenHost, takeGpus } from '../../domain/placement.ts'
import type { Tx } from '../../postgres/database.ts'
import { gathered, type OwnResult, perTransaction } from '../../postgres/gathered.ts'
import { retryAlone } from '../../postgres/transaction.ts'
import {
  doesAnyHostFit,
  hasNodePreference,
  lockHostsFor,
  type PlacementRequest,
  waitForHostLock,
} from '../../store/compute/host-locks.ts'

export interface Placement {
  hostId: string
  gpuIds: string[]
  /** The capacity request or the reservation for which the GPUs are held. */
  heldFor?: string
  /** The reservation that the VM uses. */
  reservationId?: string
}

const maxRounds = 8

/**
 * Finds GPUs for a VM, and locks their host; undefined if the VM fits nowhere. If other transactions have
 * locked all hosts where the VM fits, the request leaves its batch, waits for these hosts, and searches again.
 * It gives up only if a new statement finds no host where the VM fits. So exactly one of two requests gets the
 * last GPU.
 */
export const placeVm = gathered(placeVms)

/** The hosts that a transaction has locked, with the GPUs that it has not given to a VM. */
const lockedHosts = perTransaction((): OpenHost[] => [])

async function placeVms(tx: Tx, requests: PlacementRequest[]): Promise<OwnResult<Placement | undefined>[]> {
  const hosts = lockedHosts(tx)
  const placed: (Placement | undefined)[] = requests.map(() => undefined)
  const lockedIds = () => hosts.map(({ id }) => id)
  const place = async (isInOneNode: boolean) => {
    // Requests without a preference for one NUMA node are placed in the second pass.
    const isIncluded = (request: PlacementRequest) => !isInOneNode || hasNodePreference(request)
    for (let round = 0; round < maxRounds; round++) {
      for (const [index, request] of requests.entries())
        if (isIncluded(request)) placed[index] ??= takeGpus(hosts, request, isInOneNode)
      const missing = requests.filter((request, index) => !placed[index] && isIncluded(request))
      if (missing.length === 0) return
      const more = await lockHostsFor(tx, missing, isInOneNode, lockedIds())
      if (more.length === 0) return
      hosts.push(...more)
    }
  }
  for (;;) {
    await place(true)
    await place(false)
    // GPUs of other requests in the batch are still free in the database until it commits. They may stay
    // free, because such a request may be refused later.
    const excluded = tx.mayWait ? lockedIds() : []
    const fits = await Promise.all(
      requests.map((request, index) => !placed[index] && doesAnyHostFit(tx, request, excluded)),
    )
    if (!tx.mayWait || !fits[0])
      return placed.map((each, index) => (fits[index] ? retryAlone('hosts are locked') : each))
    await waitForHostLock(tx, requests[0]!, lockedIds())
  }
}
