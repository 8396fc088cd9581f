import type { RouteAnswer } from '@slipway/sdk'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { settingsPollMs } from '../../features/fleet/poll.ts'
import { suspendColumn } from '../../features/fleet/suspend-column.tsx'
import { FleetPage } from '../../features/page-tabs.tsx'
import { curlLine } from '../../lib/command-lines.ts'
import { shortId } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { Copyable } from '../../ui/copy.tsx'
import { FormDialog, submitting } from '../../ui/dialog.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Empty } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { whenColumn } from '../../ui/time-column.tsx'

type Row = RouteAnswer<'adminOrganizationList'>['items'][number]

export function Organizations() {
  const organizations = useQuery({ ...readAll('adminOrganizationList', {}), refetchInterval: settingsPollMs })
  const [isCreating, setCreating] = useState(false)
  const [stopsVms, setStopsVms] = useState(false)
  const suspend = useAction({
    run: (row: Row) =>
      client.adminOrganizationUpdate(
        { organization_id: row.id },
        row.suspended ? { suspended: false } : { suspended: true, stop_vms: stopsVms },
      ),
    done: (row) => (row.suspended ? `Restored ${row.name}` : `Suspended ${row.name}`),
    touches: ['adminOrganizationList'],
    showsErrors: true,
  })
  const suspensionWords = (
    <div className="flex flex-col gap-3">
      <p>
        Its members and keys are refused everywhere but in billing, at once. Its VMs go on and are metered
        unless they are stopped, too. Restoring it starts none of them.
      </p>
      <CheckField label="Stop its VMs" isChecked={stopsVms} onChange={setStopsVms} />
    </div>
  )
  const create = (
    <Button kind="primary" icon={<Plus size={16} />} onClick={() => setCreating(true)}>
      Create organization
    </Button>
  )
  return (
    <FleetPage actions={create}>
      <Loaded query={organizations}>
        {(data) => (
          <Table
            label="Organizations"
            rows={data}
            rowKey={(row) => row.id}
            empty={
              <Empty
                title="No organization yet"
                action={create}
                cli={'slipway admin org create "Harbour Labs"'}
                curl={curlLine('POST', '/v0.1/admin/organizations', { name: 'Harbour Labs' })}
              >
                An organization pays for projects and has members. Add a user to it as owner next.
              </Empty>
            }
            columns={[
              {
                key: 'name',
                title: 'Name',
                width: 'minmax(140px, 2fr)',
                cell: (row) => <span className="font-medium">{row.name}</span>,
              },
              {
                key: 'state',
                title: 'State',
                width: '130px',
                cell: (row) => <StateBadge state={row.suspended ? 'suspended' : 'active'} />,
              },
              {
                key: 'id',
                title: 'Id',
                width: '150px',
                cell: (row) => <Copyable text={row.id} shown={`…${shortId(row.id)}`} />,
              },
              whenColumn('Created', 'created_at'),
              suspendColumn({ suspend, nameOf: ({ name }) => name, words: suspensionWords }),
            ]}
          />
        )}
      </Loaded>
      {isCreating && <CreateDialog onClose={() => setCreating(false)} />}
    </FleetPage>
  )
}

function CreateDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const create = useAction({
    run: () => client.adminOrganizationCreate({ name: name.trim() }),
    done: () => `Created ${name.trim()}`,
    touches: ['adminOrganizationList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Create organization"
      action="Create organization"
      {...submitting(create, undefined, onClose)}
      reason={name.trim() ? undefined : 'Give it a name'}
    >
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        hint="Then add a user to it as owner, on the page Users."
        autoFocus
      />
    </FormDialog>
  )
}
