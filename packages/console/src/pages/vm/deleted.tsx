import type { Operation, Vm } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { read, readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { EventTable } from '../../features/event-table.tsx'
import { LatestOperation } from '../../features/latest-operation.tsx'
import { money } from '../../lib/format.ts'
import { curlCommand } from '../../lib/shell.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Copyable } from '../../ui/copy.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Empty, Facts, Page, Section, Skeleton } from '../../ui/page.tsx'
import { Mark, StateBadge } from '../../ui/state.tsx'
import { Timestamp } from '../../ui/time.tsx'

interface DeletedVmProps {
  projectId: string
  vmId: string
  /** The VM as the page last read it before its deletion. */
  last: Vm | undefined
}

/** The page of a VM that no longer exists: its data, cost and events. */
export function DeletedVmPage({ projectId, vmId, last }: DeletedVmProps) {
  const trail: [string, string][] = [['VMs', `/projects/${projectId}/vms`]]
  const operations = useQuery(readAll('operationList', { project_id: projectId, resource_id: vmId }))
  const cost = useQuery(read('projectResourceCost', { params: { project_id: projectId, resource_id: vmId } }))
  if (!operations.data && !operations.error)
    return (
      <Page title={last?.name ?? 'VM'} trail={trail}>
        <Skeleton rows={6} />
      </Page>
    )
  const known = operations.data ?? []
  if (!last && known.length === 0) return <UnknownVm projectId={projectId} vmId={vmId} trail={trail} />
  const created = known.find((operation) => nameOf(operation) === 'CREATE')
  const deleted = known.find((operation) => nameOf(operation) === 'DELETE')
  // The result of each successful operation contains the VM. The list is sorted, newest first.
  const records = [created?.metadata.request, ...known.map(({ result }) => result).toReversed(), last]
  const { name, type, location, image } = Object.assign({}, ...records.map(textsOf)) as Texts
  return (
    <Page
      title={name ?? 'VM'}
      trail={trail}
      aside={
        <span className="inline-flex items-center gap-2 whitespace-nowrap text-ink-muted">
          {deleted ? (
            <>
              <Mark tone="idle" /> no longer exists
            </>
          ) : (
            <StateBadge state="FAILED" />
          )}
        </span>
      }
      actions={
        <ButtonLink
          kind={deleted ? 'plain' : 'primary'}
          icon={<Icon name="plus" size={16} />}
          to="/projects/$projectId/vms/new"
          params={{ projectId }}
          search={created && !deleted ? { from: created.operation_id } : { type, location }}
        >
          {deleted ? 'Create a similar VM' : 'Create again'}
        </ButtonLink>
      }
    >
      {deleted ? (
        <p className="text-ink-muted">
          Its OS disk was deleted. Any data disks were kept; see{' '}
          <Link to="/projects/$projectId/disks" params={{ projectId }} className="link">
            Disks
          </Link>
          . For daily costs, see{' '}
          <Link to="/projects/$projectId/usage" params={{ projectId }} search={{ by: 'vm' }} className="link">
            Usage
          </Link>
          .
        </p>
      ) : (
        <p className="text-ink-muted">
          {failureText(created) && <span className="text-red-text">{failureText(created)} </span>}
          Creation failed; everything was cleaned up, and nothing is billed.
        </p>
      )}
      <Facts
        items={[
          ['Type', type ?? '–'],
          ['Location', location ?? '–'],
          ['Image', image ?? '–'],
          ['ID', <Copyable key="id" text={vmId} />],
          ['Created', <Timestamp key="created" iso={last?.created_at ?? created?.started_at ?? ''} />],
          ['Deleted', <Timestamp key="deleted" iso={deleted?.completed_at ?? ''} />],
          ['Total cost', cost.data ? `${money(cost.data.usd)} excluding data disks` : '–'],
        ]}
      />
      <LatestOperation projectId={projectId} resourceId={vmId} isAlwaysShown />
      <Section title="Events">
        <EventTable projectId={projectId} resourceId={vmId} limit={20} omit={['on']} />
      </Section>
    </Page>
  )
}

interface UnknownVmProps {
  projectId: string
  vmId: string
  trail: [string, string][]
}

function UnknownVm({ projectId, vmId, trail }: UnknownVmProps) {
  return (
    <Page title="VM" trail={trail} aside={<Copyable text={vmId} />}>
      <Empty
        title="This project has no VM with this ID"
        action={
          <ButtonLink to="/projects/$projectId/vms" params={{ projectId }}>
            All VMs
          </ButtonLink>
        }
        cli="slipway vm list"
        curl={curlCommand('GET', `/v0.1/projects/${projectId}/vms`)}
      >
        It may be in another project, or it was deleted more than 90 days ago.
      </Empty>
    </Page>
  )
}

/** Returns why an operation failed. */
const failureText = (operation: Operation | undefined): string =>
  operation?.state === 'FAILED' ? ((operation.result as { message?: string } | null)?.message ?? '') : ''

const nameOf = ({ metadata }: Operation) => metadata.operation_name

const textKeys = ['name', 'type', 'location', 'image'] as const
type Texts = Partial<Pick<Vm, (typeof textKeys)[number]>>

/** Returns the fields that the page shows, from a VM or from the request that created it. */
const textsOf = (record: object | null | undefined): Texts =>
  Object.fromEntries(
    Object.entries(record ?? {}).filter(([key]) => (textKeys as readonly string[]).includes(key)),
  )
