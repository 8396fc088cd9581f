import type { InstanceGroup, Vm } from '@slipway/sdk'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { useProjectId } from '../api/me.ts'
import { useUsdPerHour } from '../api/prices.ts'
import { readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { ProtectedMark } from '../features/annotations.tsx'
import { VmTabs } from '../features/page-tabs.tsx'
import { amount } from '../lib/format.ts'
import { curlCommand } from '../lib/shell.ts'
import { groupState, stateWord } from '../lib/states.ts'
import { useSearchState } from '../lib/use-search-state.ts'
import { ButtonLink } from '../ui/button.tsx'
import { ageColumn } from '../ui/columns/time-column.tsx'
import { Icon } from '../ui/icon.tsx'
import { Labels } from '../ui/labels.tsx'
import { Loaded } from '../ui/loaded.tsx'
import { NoBreak } from '../ui/no-break.tsx'
import { Empty, Page } from '../ui/page.tsx'
import { StateBadge } from '../ui/state.tsx'
import { type Column, noValue, Table } from '../ui/table.tsx'

/** The groups of the project: VMs that are created, started and stopped together. */
export function Groups() {
  const projectId = useProjectId()
  const groups = useQuery(readAll('instanceGroupList', { project_id: projectId }))
  const [search, setSearch] = useSearchState()
  const columns = useColumns(projectId, groups.data ?? [])
  const create = (
    <ButtonLink
      kind="primary"
      icon={<Icon name="plus" size={16} />}
      to="/projects/$projectId/vms/new"
      params={{ projectId }}
      search={{ count: '2' }}
    >
      Create group
    </ButtonLink>
  )
  return (
    <Page title="VMs" actions={create} isWide>
      <VmTabs />
      <Loaded query={groups} rows={3}>
        {(data) =>
          data.length === 0 ? (
            <Empty
              title="No groups yet"
              action={create}
              cli="slipway group create trainer --count 4 --type a100.8x --location us-east1-a"
              curl={curlCommand('POST', `/v0.1/projects/${projectId}/instance-groups`, {
                name: 'trainer',
                desired_count: 4,
                vm: {
                  type: 'a100.8x',
                  location: 'us-east1-a',
                  image: 'ubuntu24.04-nvidia:latest',
                  ssh_public_key: 'ssh-ed25519 …',
                },
              })}
            >
              A group has up to 64 identical VMs, such as the nodes of a training run. Either all VMs are
              created or none are. Billing starts when all VMs respond.
            </Empty>
          ) : (
            <Table
              label="Groups"
              rows={data}
              columns={columns}
              sort={search.sort ?? ''}
              onSort={(sort) => setSearch({ sort })}
              rowKey={({ id }) => id}
            />
          )
        }
      </Loaded>
    </Page>
  )
}

function useColumns(projectId: string, groups: InstanceGroup[]): Column<InstanceGroup>[] {
  const vms = useQuery(readAll('vmList', { project_id: projectId }))
  const usdPerHour = useUsdPerHour(projectId)
  const byId = useMemo(() => new Map((vms.data ?? []).map((vm) => [vm.id, vm])), [vms.data])
  const membersOf = ({ instances }: InstanceGroup): Vm[] =>
    instances.flatMap((id) => {
      const vm = byId.get(id)
      return vm ? [vm] : []
    })
  /** Returns undefined until all running members are read, because the sum would be too low. */
  const priceOf = (group: InstanceGroup): number | undefined =>
    vms.data && group.active_instances.every((id) => byId.has(id))
      ? membersOf(group).reduce((sum, vm) => sum + (usdPerHour(vm) ?? 0), 0)
      : undefined
  const hasLabels = groups.some(({ labels }) => Object.keys(labels).length > 0)
  return [
    {
      key: 'name',
      title: 'Name',
      width: 'minmax(130px, 2fr)',
      sortBy: (group) => group.name,
      cell: (group) => (
        <>
          <Link
            to="/projects/$projectId/groups/$groupId"
            params={{ projectId, groupId: group.id }}
            className="font-medium hover:text-accent-text hover:underline"
          >
            {group.name}
          </Link>
          <ProtectedMark resource={group} />
        </>
      ),
    },
    {
      key: 'state',
      title: 'State',
      width: 'minmax(132px, 0.8fr)',
      sortBy: (group) => stateWord(groupState(group)),
      cell: (group) => <StateBadge state={groupState(group)} since={group.updated_at} />,
    },
    {
      key: 'running',
      title: 'Running',
      width: '96px',
      align: 'right',
      sortBy: (group) => group.running_instance_count,
      cell: (group) => `${group.running_instance_count} of ${group.desired_count}`,
    },
    {
      key: 'type',
      title: 'Type',
      width: 'minmax(124px, 0.8fr)',
      isFoldable: true,
      cell: (group) => [...new Set(membersOf(group).map(({ type }) => type))].join(', ') || noValue,
    },
    {
      key: 'location',
      title: 'Location',
      width: 'minmax(112px, 0.8fr)',
      isFoldable: true,
      sortBy: (group) => group.location,
      cell: (group) => <NoBreak>{group.location}</NoBreak>,
    },
    ...(hasLabels ? [labelsColumn] : []),
    {
      key: 'price',
      title: 'USD/h',
      width: '80px',
      align: 'right',
      isFoldable: true,
      sortBy: priceOf,
      cell: (group) => {
        const price = priceOf(group)
        return price === undefined ? noValue : amount(price)
      },
    },
    ageColumn,
  ]
}

const labelsColumn: Column<InstanceGroup> = {
  key: 'labels',
  title: 'Labels',
  width: 'minmax(104px, 1.2fr)',
  isFoldable: true,
  cell: (group) => <Labels labels={group.labels} />,
}
