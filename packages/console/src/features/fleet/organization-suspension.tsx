import type { ListItem } from '@slipway/sdk'
import { useState } from 'react'
import { client } from '../../api/client.ts'
import { plural } from '../../lib/format.ts'
import { operatorCommands } from '../../lib/shell.ts'
import { CheckField } from '../../ui/field.tsx'
import { useSuspension } from './suspension.tsx'

/** The button and the confirmation to suspend or restore an organization. */
export function useOrganizationSuspension() {
  const [stopsVms, setStopsVms] = useState(false)
  const body = { suspended: true, stop_vms: stopsVms }
  return useSuspension<ListItem<'adminOrganizationList'>>({
    suspend: ({ id }) => client.adminOrganizationUpdate({ organization_id: id }, body),
    restore: ({ id }) => client.adminOrganizationUpdate({ organization_id: id }, { suspended: false }),
    nameOf: ({ name }) => name,
    invalidates: ['adminOrganizationList'],
    action: 'Suspend organization',
    explanationOf: ({ vms }) => (
      <div className="flex flex-col gap-3">
        <p>
          The organization’s members and keys will immediately lose access to everything except billing. Its
          VMs will keep running and be billed unless you also stop them. Restoring the organization will not
          start stopped VMs.
        </p>
        <CheckField
          label="Stop its VMs"
          hint={`${vms === 0 ? 'The organization has no VMs now.' : `The organization has ${plural(vms, 'VM')}.`} Any local scratch data on the stopped VMs will be lost.`}
          isChecked={stopsVms}
          onChange={setStopsVms}
        />
      </div>
    ),
    commandsOf: ({ id }) =>
      operatorCommands({
        cli: `slipway admin org suspend ${id}${stopsVms ? ' --stop-vms' : ''}`,
        method: 'PATCH',
        path: `/organizations/${id}`,
        body,
      }),
  })
}
