import type { AccessKey } from '@slipway/sdk'
import { actionColumn } from '../ui/action-column.tsx'
import { Button } from '../ui/button.tsx'
import { Table } from '../ui/table.tsx'
import { Ago, When } from '../ui/time.tsx'
import { ageColumn } from '../ui/time-column.tsx'

interface KeyTableProps {
  label: string
  keys: AccessKey[]
  whyNot: string | undefined
  onRevoke: (key: AccessKey) => void
}

/** Keys of a project or of an organization: what they may do, from where, and whether anybody uses them. */
export function KeyTable({ label, keys, whyNot, onRevoke }: KeyTableProps) {
  return (
    <Table
      label={label}
      rows={keys}
      rowKey={(key) => key.id}
      columns={[
        {
          key: 'name',
          title: 'Name',
          width: 'minmax(140px, 2fr)',
          cell: (key) => <span className="font-medium">{key.name}</span>,
        },
        {
          key: 'prefix',
          title: 'Begins with',
          width: 'minmax(140px, 1fr)',
          cell: (key) => <span className="mono">{key.prefix}…</span>,
        },
        { key: 'role', title: 'Role', width: '90px', cell: (key) => key.role },
        {
          key: 'from',
          title: 'Works from',
          width: 'minmax(110px, 1fr)',
          cell: (key) => key.allowed_cidrs.join(', ') || 'anywhere',
        },
        {
          key: 'used',
          title: 'Last used',
          width: '100px',
          align: 'right',
          cell: (key) =>
            key.last_used_at ? <Ago iso={key.last_used_at} /> : <span className="text-ink-muted">never</span>,
        },
        {
          key: 'expires',
          title: 'Expires',
          width: '180px',
          align: 'right',
          cell: (key) => <When iso={key.expires_at} empty="never" />,
        },
        ageColumn,
        actionColumn('90px', (key: AccessKey) => (
          <Button
            size="small"
            kind="danger"
            reason={whyNot}
            onClick={() => onRevoke(key)}
            aria-label={`Revoke ${key.name}`}
          >
            Revoke
          </Button>
        )),
      ]}
    />
  )
}
