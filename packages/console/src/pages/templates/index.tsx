import type { InstanceTemplate } from '@slipway/sdk'
import { useProjectId, useWhyNot } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { VmTabs } from '../../features/page-tabs.tsx'
import { curlCommand } from '../../lib/shell.ts'
import { useSearchState } from '../../lib/use-search-state.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { actionColumn } from '../../ui/columns/action-column.tsx'
import { ageColumn } from '../../ui/columns/time-column.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { NoBreak } from '../../ui/no-break.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { TemplateDialog } from './dialog.tsx'

/** The templates of the project. Each row is the latest version; a dialog shows all versions. */
export function Templates() {
  const projectId = useProjectId()
  const whyNot = useWhyNot('member')
  const templates = useQuery(readAll('instanceTemplateList', { project_id: projectId }))
  const [search, setSearch] = useSearchState()
  const open = templates.data?.find(({ id }) => id === search.open)
  const versionsOf = ({ name }: InstanceTemplate) =>
    (templates.data ?? [])
      .filter((template) => template.name === name)
      .toSorted((a, b) => b.version - a.version)
  const create = (
    <ButtonLink
      kind="primary"
      icon={<Icon name="plus" size={16} />}
      to="/projects/$projectId/vms/new"
      params={{ projectId }}
      search={{ save: 'template' }}
    >
      Create template
    </ButtonLink>
  )
  const columns: Column<InstanceTemplate>[] = [
    {
      key: 'name',
      title: 'Name',
      width: 'minmax(130px, 1.4fr)',
      sortBy: ({ name }) => name,
      cell: ({ id, name }) => (
        <button
          type="button"
          className="font-medium hover:text-accent-text hover:underline"
          onClick={() => setSearch({ open: id })}
        >
          {name}
        </button>
      ),
    },
    {
      key: 'version',
      title: 'Version',
      width: '90px',
      cell: ({ version }) => version,
    },
    {
      key: 'type',
      title: 'Type',
      width: 'minmax(124px, 0.8fr)',
      cell: ({ type }) => <NoBreak>{type ?? '–'}</NoBreak>,
    },
    {
      key: 'location',
      title: 'Location',
      width: 'minmax(112px, 0.8fr)',
      isFoldable: true,
      cell: ({ location }) => <NoBreak>{location ?? '–'}</NoBreak>,
    },
    {
      key: 'image',
      title: 'Image',
      width: 'minmax(180px, 1.2fr)',
      isFoldable: true,
      cell: ({ image }) => image ?? '–',
    },
    ageColumn,
    actionColumn('110px', ({ id, name }: InstanceTemplate) => (
      <ButtonLink
        size="small"
        aria-label={`Create VM from ${name}`}
        to="/projects/$projectId/vms/new"
        params={{ projectId }}
        search={{ template: id }}
      >
        Create VM
      </ButtonLink>
    )),
  ]
  return (
    <Page title="VMs" actions={create} reasons={[whyNot]} isWide>
      <VmTabs />
      <Loaded query={templates} rows={3}>
        {(data) =>
          data.length === 0 ? (
            <Empty
              title="No templates yet"
              action={create}
              cli="slipway template create trainer --type a100.1x --location us-east1-a --image ubuntu24.04-nvidia"
              curl={curlCommand('POST', `/v0.1/projects/${projectId}/instance-templates`, {
                name: 'trainer',
                type: 'a100.1x',
                location: 'us-east1-a',
                image: 'ubuntu24.04-nvidia:latest',
              })}
            >
              A template stores settings for new VMs and groups. To create one, fill in the form for creating
              a VM and choose “Save as template”.
            </Empty>
          ) : (
            <Table
              label="Templates"
              rows={data.filter((template) => versionsOf(template)[0] === template)}
              columns={columns}
              sort={search.sort ?? ''}
              onSort={(sort) => setSearch({ sort })}
              rowKey={({ id }) => id}
            />
          )
        }
      </Loaded>
      {open && (
        <TemplateDialog
          template={open}
          versions={versionsOf(open)}
          onOpen={(id) => setSearch({ open: id })}
          onClose={() => setSearch({ open: '' })}
        />
      )}
    </Page>
  )
}
