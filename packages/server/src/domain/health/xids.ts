/** What an XID error means for the GPU. */
export type XidMeaning = 'application' | 'information' | 'reset' | 'replace' | 'unlisted'

/**
 * XID errors by meaning, as ranges. The meanings follow the immediate actions in NVIDIA's catalogue, except
 * for 64, after which a GPU is returned to the vendor.
 */
const table: Record<Exclude<XidMeaning, 'unlisted'>, string> = {
  application: '8 11 13 25 31 32 37-45 60 66-72 75-77 80 82-86 88 89 94 96-105 126-135 139',
  information: '63 92 93 106 107 121 137 141 152-154 157 160-163 171 172',
  reset: '46 48 62 74 95 109 110 119 120 136 140 143-151 155 156 158',
  replace: '54 64 79',
}

/** After these errors, the VM stays healthy, but the GPU is checked when the VM releases it. */
const checkedAfter = [63, 157]

/** Represents a lost GPU, which reports no XID error. */
export const lostXid = 0

/** Meanings that operators chose instead of those in the table. */
export type XidMeanings = ReadonlyMap<number, XidMeaning>

const meanings: XidMeanings = new Map(
  Object.entries(table).flatMap(([meaning, ranges]) =>
    ranges.split(' ').flatMap((range) => {
      const [first = 0, last = first] = range.split('-').map(Number)
      return Array.from({ length: last - first + 1 }, (_, index) => [
        first + index,
        meaning as XidMeaning,
      ]) as [number, XidMeaning][]
    }),
  ),
)

export function meaningOf(xid: number, operatorMeanings: XidMeanings = new Map()): XidMeaning {
  if (xid === lostXid) return 'replace'
  return operatorMeanings.get(xid) ?? meanings.get(xid) ?? 'unlisted'
}

/** Returns the errors after which a GPU needs a check. Other errors do not indicate a hardware problem. */
export const suspectXids = (operatorMeanings: XidMeanings): number[] =>
  [lostXid, ...meanings.keys(), ...operatorMeanings.keys()].filter((xid) =>
    makesSuspect(xid, operatorMeanings),
  )

/** Returns whether a GPU with this error needs a check before another VM gets it. */
export const makesSuspect = (xid: number, operatorMeanings?: XidMeanings): boolean =>
  checkedAfter.includes(xid) || ['reset', 'replace'].includes(meaningOf(xid, operatorMeanings))
