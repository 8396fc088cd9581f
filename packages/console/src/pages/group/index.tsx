import { type InstanceGroup, isApiError } from '@slipway/sdk'
import { Link, useParams } from '@tanstack/react-router'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { useUsdPerHour } from '../../api/prices.ts'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { Annotations, EditButton } from '../../features/annotations.tsx'
import { TemplateLink } from '../../features/capacity/template-link.tsx'
import { EventTable } from '../../features/event-table.tsx'
import { LatestOperation } from '../../features/latest-operation.tsx'
import { plural, usd } from '../../lib/format.ts'
import { groupState } from '../../lib/states.ts'
import { Copyable } from '../../ui/copy.tsx'
import { ErrorState } from '../../ui/error.tsx'
import { Facts, Page, Section, Skeleton } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Timestamp } from '../../ui/time.tsx'
import { GroupActions, whyNotNow } from './actions.tsx'
import { Members } from './members.tsx'

/** A group's page: its members by rank, and actions that apply to all of them. */
export function GroupPage() {
  const projectId = useProjectId()
  const { groupId = '' } = useParams({ strict: false })
  const group = useQuery(
    read('instanceGroupGet', { params: { project_id: projectId, instance_group_id: groupId } }),
  )
  const trail: [string, string][] = [['Groups', `/projects/${projectId}/groups`]]
  if (isApiError(group.error) && group.error.code === 'not_found')
    return (
      <Page title={group.data?.name ?? 'Group'} trail={trail}>
        <p className="text-ink-muted">
          This group no longer exists.{' '}
          <Link to="/projects/$projectId/groups" params={{ projectId }} className="link">
            Show all groups
          </Link>
        </p>
        <LatestOperation projectId={projectId} resourceId={groupId} isAlwaysShown />
        <Section title="Events">
          <EventTable projectId={projectId} resourceId={groupId} limit={20} />
        </Section>
      </Page>
    )
  if (!group.data)
    return (
      <Page title="Group" trail={trail}>
        {group.error ? (
          <ErrorState error={group.error} onRetry={() => group.refetch()} />
        ) : (
          <Skeleton rows={10} />
        )}
      </Page>
    )
  return <ExistingGroup group={group.data} trail={trail} />
}

function ExistingGroup({ group, trail }: { group: InstanceGroup; trail: [string, string][] }) {
  const whyNot = useWhyNot('member')
  const vms = useQuery(readAll('vmList', { project_id: group.project_id }))
  const usdPerHour = useUsdPerHour(group.project_id)
  const members = (vms.data ?? []).filter(({ id }) => group.instances.includes(id))
  const price = members.reduce((sum, vm) => sum + (usdPerHour(vm) ?? 0), 0)
  return (
    <Page
      title={group.name}
      trail={trail}
      reasons={whyNot ? [whyNot] : [whyNotNow(group, 'start'), whyNotNow(group, 'stop')]}
      aside={
        <>
          <StateBadge state={groupState(group)} since={group.updated_at} />
          <EditButton resource={group} kind="group" whyNot={whyNot} />
        </>
      }
      actions={<GroupActions group={group} vms={members} />}
    >
      <Annotations resource={group} />
      <LatestOperation projectId={group.project_id} resourceId={group.id} />
      <Members group={group} vms={members} />
      <Facts
        items={[
          ['Running', `${group.running_instance_count} of ${plural(group.desired_count, 'VM')}`],
          ['Type', [...new Set(members.map(({ type }) => type))].join(', ') || '–'],
          ['Location', group.location],
          ['Price', `${usd(price)}/h`],
          ['Template', <TemplateLink key="template" id={group.template_id} />],
          ['Placement', placementText[group.placement_policy]],
          ['Lost members', lossText[group.on_member_loss]],
          ['Generation', group.generation],
          ['ID', <Copyable key="id" text={group.id} />],
          ['Created', <Timestamp key="created" iso={group.created_at} />],
        ]}
      />
      <Section title="Events">
        <EventTable projectId={group.project_id} resourceId={group.id} limit={20} />
      </Section>
    </Page>
  )
}

const placementText: Record<InstanceGroup['placement_policy'], string> = {
  unspecified: 'no preference',
  spread: 'each VM on its own host',
  pack: 'on as few hosts as possible',
}

const lossText: Record<InstanceGroup['on_member_loss'], string> = {
  none: 'not replaced',
  replace: 'replaced with new VMs',
}
