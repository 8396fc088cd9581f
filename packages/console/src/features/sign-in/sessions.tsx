import type { RouteResponse } from '@slipway/sdk'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { agentText } from '../../lib/user-agent.ts'
import { Button } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { Ago } from '../../ui/time.tsx'

type Session = RouteResponse<'authSessionList'>['items'][number]

/** Lists the sessions of the user. */
export function Sessions() {
  const sessions = useQuery(read('authSessionList', {}))
  const signOut = useAction({
    run: (session_id: string) => client.authSessionDelete({ session_id }),
    done: () => 'Session signed out',
    failed: () => 'Could not sign out the session',
    invalidates: ['authSessionList'],
  })
  return (
    <Section title="Sessions">
      <Loaded query={sessions} rows={2}>
        {({ items }) => (
          <Table
            label="Sessions"
            rows={items}
            rowKey={(session) => session.id}
            columns={[
              {
                key: 'agent',
                title: 'Device',
                width: 'minmax(180px, 2fr)',
                cell: (session) => (
                  <span title={session.user_agent}>
                    {agentText(session.user_agent)}
                    {session.is_current && <span className="text-ink-muted"> (current)</span>}
                  </span>
                ),
              },
              {
                key: 'address',
                title: 'IP address',
                width: 'minmax(130px, 1fr)',
                cell: (session) => <span className="mono">{session.client_address}</span>,
              },
              {
                key: 'used',
                title: 'Last used',
                width: '110px',
                align: 'right',
                cell: (session) => <Ago iso={session.last_used_at} />,
              },
              // The account menu signs out the current session.
              actionColumn(
                '96px',
                (session: Session) =>
                  !session.is_current && (
                    <Button
                      size="small"
                      kind="danger"
                      onClick={() => signOut.mutate(session.id)}
                      aria-label={`Sign out ${agentText(session.user_agent)} at ${session.client_address}`}
                    >
                      Sign out
                    </Button>
                  ),
              ),
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}
