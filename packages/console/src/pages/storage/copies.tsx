import type { CustomImage, Snapshot } from '@slipway/sdk'
import { ProtectedMark } from '../../features/annotations.tsx'
import { gibOf } from '../../lib/disk-price.ts'
import { sizeText, storedText } from '../../lib/format.ts'
import { NoBreak } from '../../ui/no-break.tsx'
import { StateBadge } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'

/** What the values of `consistency` mean, shown to users. */
const meanings: Record<string, string> = {
  off: 'No VM could write to the disk.',
  frozen: 'The VM was running and froze its file systems when copying began.',
  crash: 'A running VM could write during the copy. The content is like a disk after a power failure.',
}

/** The columns that images and snapshots have in common. */
export const copyColumns = <Copy extends CustomImage | Snapshot>(
  locationOf: (copy: Copy) => string,
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
    key: 'consistency',
    title: 'Consistency',
    width: '112px',
    isFoldable: true,
    cell: ({ consistency }) => <span title={meanings[consistency]}>{consistency || '–'}</span>,
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
