import type { AccessKey } from '@slipway/sdk'
import { useProject } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { useNow } from '../../lib/clock.ts'
import { RowButton } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { ageColumn } from '../../ui/columns/time-column.tsx'
import { noValue, Table } from '../../ui/table.tsx'
import { Ago, Until } from '../../ui/time.tsx'

const never = <span className="text-ink-muted">never</span>

function Expiry({ iso }: { iso: string }) {
  const now = useNow()
  if (!iso) return never
  return Date.parse(iso) > now ? <Until iso={iso} /> : <span className="text-amber-text">expired</span>
}

/** The name of the key that created this key. */
function ParentKey({ id }: { id: string }) {
  const { organization_id } = useProject()
  const parents = useQuery(readAll('organizationKeyList', { organization_id }))
  const parent = parents.data?.find((key) => key.id === id)
  return parent ? parent.name : <span className="mono">{id.slice(0, 8)}…</span>
}

interface KeyTableProps {
  label: string
  keys: AccessKey[]
  whyNot: string | undefined
  onRevoke: (key: AccessKey) => void
}

/** Lists the access keys of a project or an organization. */
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
          title: 'Prefix',
          width: 'minmax(140px, 1fr)',
          cell: (key) => <span className="mono">{key.prefix}…</span>,
        },
        { key: 'role', title: 'Role', width: '90px', cell: (key) => key.role },
        // Most keys are sent as bearer tokens.
        ...(keys.some(({ kind }) => kind !== 'bearer')
          ? [{ key: 'kind', title: 'Kind', width: '80px', cell: ({ kind }: AccessKey) => kind }]
          : []),
        {
          key: 'from',
          title: 'Allowed IPs',
          width: 'minmax(110px, 1fr)',
          cell: (key) => key.allowed_cidrs.join(', ') || 'any',
        },
        // Only organization keys can create keys, so most lists have no key that another key created.
        ...(keys.some(({ parent_id }) => parent_id)
          ? [
              {
                key: 'parent',
                title: 'Created by key',
                width: 'minmax(130px, 1fr)',
                cell: ({ parent_id }: AccessKey) => (parent_id ? <ParentKey id={parent_id} /> : noValue),
              },
            ]
          : []),
        {
          key: 'used',
          title: 'Last used',
          width: '100px',
          align: 'right',
          cell: (key) => (key.last_used_at ? <Ago iso={key.last_used_at} /> : never),
        },
        {
          key: 'expires',
          title: 'Expires',
          width: '100px',
          align: 'right',
          cell: (key) => <Expiry iso={key.expires_at} />,
        },
        ageColumn,
        actionColumn('90px', (key: AccessKey) => (
          <RowButton
            verb="Revoke"
            name={key.name}
            kind="danger"
            reason={whyNot}
            onClick={() => onRevoke(key)}
          />
        )),
      ]}
    />
  )
}
