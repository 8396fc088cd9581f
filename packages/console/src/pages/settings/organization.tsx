import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useMe, useProject, useRole, useWhyNot } from '../../api/me.ts'
import { useActorNames } from '../../api/resource-names.ts'
import { EventRows, OlderEvents } from '../../features/event-table.tsx'
import { SettingsTabs } from '../../features/page-tabs.tsx'
import { ProjectSummaries } from '../../features/project-summaries.tsx'
import { Button } from '../../ui/button.tsx'
import { ErrorState } from '../../ui/error.tsx'
import { Page, Section, Skeleton } from '../../ui/page.tsx'
import { AlertRecipients } from './alert-recipients.tsx'
import { OrganizationQuotas } from './quota-requests.tsx'

/** Settings for all projects of the organization. */
export function OrganizationSettings() {
  const { organization_id } = useProject()
  const { organizations } = useMe()
  const name = organizations.find(({ id }) => id === organization_id)?.name
  return (
    <Page title="Settings" tabTitle="Organization">
      <SettingsTabs />
      <p className="text-ink-muted">Settings for all projects in {name}</p>
      <ProjectSummaries organizationId={organization_id} title="Projects" label="Projects" />
      <OrganizationQuotas organizationId={organization_id} />
      <AlertRecipients organizationId={organization_id} />
      <RequireTwoFactor organizationId={organization_id} />
      <Events organizationId={organization_id} />
    </Page>
  )
}

function RequireTwoFactor({ organizationId }: { organizationId: string }) {
  const { caller, organizations } = useMe()
  const whyNot = useWhyNot('owner')
  const isRequired = organizations.find(({ id }) => id === organizationId)?.require_totp ?? false
  const update = useAction({
    run: (require_totp: boolean) =>
      client.organizationUpdate({ organization_id: organizationId }, { require_totp }),
    done: (isWanted) =>
      isWanted ? 'Two-factor authentication is required' : 'Two-factor authentication is optional',
    failed: () => 'Could not change two-factor authentication',
    invalidates: ['organizationList'],
  })
  const lacksOwn = !whyNot && !isRequired && !caller.has_totp
  const reason =
    whyNot ?? (lacksOwn ? 'Set up two-factor authentication for your own account first.' : undefined)
  return (
    <Section title="Two-factor authentication">
      <div className="card flex flex-wrap items-center justify-between gap-4 px-4 py-3">
        <span className="text-ink-muted">
          {isRequired
            ? 'Required. Members have no access until they set it up. Access keys are not affected.'
            : 'Optional. Members can sign in with only a password.'}
          {lacksOwn && (
            <>
              {' '}
              To require it, first set it up for{' '}
              <Link to="/account" className="link">
                your own account
              </Link>
              .
            </>
          )}
        </span>
        <Button reason={reason} isBusy={update.isPending} onClick={() => update.mutate(!isRequired)}>
          {isRequired ? 'Make two-factor authentication optional' : 'Require two-factor authentication'}
        </Button>
      </div>
    </Section>
  )
}

/**
 * Events about members, billing, keys and failed sign-ins, with source addresses. Only for admins and owners.
 */
function Events({ organizationId }: { organizationId: string }) {
  const role = useRole(organizationId)
  const actors = useActorNames(useProject())
  const events = useInfiniteQuery({
    queryKey: ['organizationEventList', { organizationId }],
    enabled: role === 'admin' || role === 'owner',
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      client.organizationEventList(
        { organization_id: organizationId, limit: 50, page_token: pageParam || undefined },
        { signal },
      ),
    getNextPageParam: (page) => page.next_page_token || undefined,
  })
  if (role !== 'admin' && role !== 'owner') return null
  const rows = events.data?.pages.flatMap((page) => page.items) ?? []
  return (
    <Section title="Organization events">
      {events.error && !events.data ? (
        <ErrorState error={events.error} onRetry={() => events.refetch()} />
      ) : !events.data ? (
        <Skeleton rows={4} />
      ) : rows.length === 0 ? (
        <p className="card px-4 py-3 text-ink-muted">No events in the last 90 days.</p>
      ) : (
        <EventRows rows={rows} hasOlder={events.hasNextPage} actors={actors} hasAddresses />
      )}
      <OlderEvents query={events} />
    </Section>
  )
}
