import { hoursPerMonth } from '@slipway/contract/vm-types'
import type { CustomImage, Snapshot } from '@slipway/sdk'
import { ProtectedMark } from '../../features/annotations.tsx'
import { gibOf } from '../../lib/disk-price.ts'
import { amount, sizeText, storedText } from '../../lib/format.ts'
import { NoBreak } from '../../ui/no-break.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, noValue } from '../../ui/table.tsx'

/** The names of the values of `consistency`, and what they mean. */
const consistencies: Record<string, [name: string, meaning: string]> = {
  off: ['off', 'No VM could write to the disk.'],
  frozen: ['frozen', 'The VM was running and froze its file systems when copying began.'],
  crash: [
    'crash-consistent',
    'A running VM could write during the copy. The content is like a disk after a power failure.',
  ],
}

/** Storage is billed in whole GiB. */
const usdPerMonth = (storedBytes: number, usdPerGibHour: number): number =>
  Math.max(1, Math.ceil(storedBytes / 1024 ** 3)) * usdPerGibHour * hoursPerMonth

/** The columns that images and snapshots have in common. */
export const copyColumns = <Copy extends CustomImage | Snapshot>(
  locationOf: (copy: Copy) => string,
  usdPerGibHour: number | undefined,
): Column<Copy>[] => [
  {
    key: 'name',
    title: 'Name',
    width: 'minmax(140px, 2fr)',
    sortBy: ({ name }) => name,
    cell: (copy) => (
      <span className="font-medium" title={copy.description || copy.id}>
        {copy.name}
        <ProtectedMark resource={copy} />
      </span>
    ),
  },
  {
    key: 'size',
    title: 'Disk size',
    width: '108px',
    align: 'right',
    isFoldable: true,
    sortBy: ({ size }) => gibOf(size),
    cell: ({ size }) => sizeText(size),
  },
  {
    key: 'stored',
    title: 'Stored',
    width: '92px',
    align: 'right',
    isFoldable: true,
    sortBy: ({ stored_bytes }) => stored_bytes,
    cell: ({ stored_bytes }) => storedText(stored_bytes),
  },
  {
    key: 'price',
    title: 'USD/month',
    width: '112px',
    align: 'right',
    isFoldable: true,
    sortBy: ({ stored_bytes }) => stored_bytes,
    cell: ({ stored_bytes }) =>
      usdPerGibHour === undefined || stored_bytes === 0
        ? noValue
        : amount(usdPerMonth(stored_bytes, usdPerGibHour)),
  },
  {
    key: 'consistency',
    title: 'Consistency',
    width: '140px',
    isFoldable: true,
    cell: ({ consistency }) => {
      const [name, meaning] = consistencies[consistency] ?? []
      return name ? <span title={meaning}>{name}</span> : noValue
    },
  },
  {
    key: 'location',
    title: 'Location',
    width: 'minmax(112px, 1fr)',
    isFoldable: true,
    cell: (copy) => <NoBreak>{locationOf(copy)}</NoBreak>,
  },
  {
    key: 'state',
    title: 'State',
    width: '115px',
    cell: (copy) => <StateBadge state={copy.state} since={copy.created_at} />,
  },
]
