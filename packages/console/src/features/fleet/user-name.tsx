import type { ListItem } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { shortId } from '../../lib/format.ts'
import { timeOf } from '../../ui/columns/time-column.tsx'
import type { Column } from '../../ui/table.tsx'
import { Ago } from '../../ui/time.tsx'

type User = ListItem<'adminUserList'>

/** Links to a user's page. An invited user has no account yet, and therefore no page. */
export const UserName = ({ row: { id, email, state } }: { row: User }) =>
  state === 'invited' ? (
    <span className="font-medium">{email}</span>
  ) : (
    <Link
      to="/fleet/users/$userId"
      params={{ userId: id }}
      className="font-medium hover:text-accent-text hover:underline"
    >
      {email || `…${shortId(id)}`}
    </Link>
  )

export const lastSignInColumn: Column<User> = {
  key: 'signed-in',
  title: 'Last sign-in',
  width: '124px',
  align: 'right',
  sortBy: ({ last_sign_in_at }) => timeOf(last_sign_in_at),
  cell: ({ last_sign_in_at }) =>
    last_sign_in_at ? <Ago iso={last_sign_in_at} /> : <span className="text-ink-muted">never</span>,
}
