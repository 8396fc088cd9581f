import type { CustomImage, Snapshot } from '@slipway/sdk'
import { usePriceOf } from '../../api/prices.ts'
import { ProtectedMark } from '../../features/annotations.tsx'
import { gibOf, monthlyText } from '../../lib/disks.ts'
import { plural, sizeText } from '../../lib/format.ts'
import { storedText } from '../../lib/units/sizes.ts'
import { ageColumn } from '../../ui/columns/time-column.tsx'
import { NoBreak } from '../../ui/no-break.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { type Column, noValue } from '../../ui/table.tsx'

/** The values of `consistency` in words, and what they mean. */
const consistencies: Record<string, [text: string, meaning: string]> = {
  off: ['clean', 'The disk was not in use: no running VM could write to it.'],
  frozen: ['frozen', 'The VM was running and froze its file systems when copying began.'],
  crash: [
    'crash-consistent',
    'A running VM could write during the copy. The content is like a disk after a power failure.',
  ],
}

interface CopiesTotalProps {
  projectId: string
  copies: Pick<Snapshot, 'stored_bytes'>[]
  noun: string
  /** The product as which the stored data is billed. */
  product: string
}

/** The number of copies, their stored size, and its price: "2 snapshots, 125 GiB stored: 9.13 USD per month". */
export function CopiesTotal({ projectId, copies, noun, product }: CopiesTotalProps) {
  const usdPerGib = usePriceOf(projectId)(product)
  // Each copy is billed in whole GiB.
  const billedGib = copies.reduce((sum, { stored_bytes }) => sum + Math.ceil(stored_bytes / 1024 ** 3), 0)
  const bytes = copies.reduce((sum, { stored_bytes }) => sum + stored_bytes, 0)
  return (
    <p className="figures text-ink-muted">
      {plural(copies.length, noun)}
      {bytes > 0 && `, ${storedText(bytes)} stored`}
      {bytes > 0 && usdPerGib !== undefined && `: ${monthlyText(billedGib * usdPerGib)}`}
    </p>
  )
}

/** The columns that images and snapshots have in common. */
export const copyColumns = <Copy extends CustomImage | Snapshot>(
  locationOf: (copy: Copy) => string,
): Column<Copy>[] => [
  {
    key: 'name',
    title: 'Name',
    width: 'minmax(150px, 2fr)',
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
    width: '96px',
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
    key: 'location',
    title: 'Location',
    width: 'minmax(98px, 1fr)',
    isFoldable: true,
    cell: (copy) => <NoBreak>{locationOf(copy)}</NoBreak>,
  },
  {
    key: 'state',
    title: 'State',
    width: '108px',
    cell: (copy) => <StateBadge state={copy.state} since={copy.created_at} />,
  },
  { ...(ageColumn as Column<Copy>), width: '76px' },
  // The last column folds first.
  {
    key: 'consistency',
    title: 'Consistency',
    width: 'minmax(112px, 1fr)',
    isFoldable: true,
    cell: ({ consistency }) => {
      const [text, meaning] = consistencies[consistency] ?? [noValue, '']
      return text === noValue ? noValue : <span title={meaning}>{text}</span>
    },
  },
]
