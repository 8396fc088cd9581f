import { vmType, vmTypes } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { read, readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { type AdminProject, ProjectPicker } from '../../../features/fleet/project-picker.tsx'
import { plural, usd } from '../../../lib/format.ts'
import { operatorCommands } from '../../../lib/shell.ts'
import { FormDialog, submitProps } from '../../../ui/dialog.tsx'
import { SelectField, TextField } from '../../../ui/field.tsx'

type VmTypeName = (typeof vmTypes)[number]['name']

/** Sells GPUs of a type to an organization. */
export function SellReservation({ onClose }: { onClose: () => void }) {
  const projects = useQuery(readAll('adminProjectList', {}))
  const locations = useQuery(read('adminLocationList', {}))
  const [project, setProject] = useState<AdminProject | null>(null)
  const capacity = useQuery(read('adminCapacityList', {}))
  const [chosenType, setType] = useState<VmTypeName>()
  const [location, setLocation] = useState('')
  const [count, setCount] = useState('1')
  const [start, setStart] = useState('')
  const [end, setEnd] = useState('')
  const [price, setPrice] = useState('')
  const locationItems = locations.data?.items ?? []
  const chosenLocation = location || locationItems[0]?.name || ''
  const families = new Set<string>(
    (capacity.data?.items ?? [])
      .filter((each) => each.location === chosenLocation && each.total > 0)
      .map(({ family }) => family),
  )
  const type = chosenType ?? (vmTypes.find(({ family }) => families.has(family)) ?? vmTypes[0]!).name
  const request = {
    organization_id: project?.organization_id ?? '',
    billing_project_id: project?.id ?? '',
    type,
    location: chosenLocation,
    count: Number(count),
    contract_start_date: start && new Date(start).toISOString(),
    contract_end_date: end && new Date(end).toISOString(),
    usd_per_gpu_hour: Number(price),
  }
  const sell = useAction({
    run: () => client.adminReservationCreate(request),
    done: () => `Sold ${count} × ${type} to ${project?.organization_name}`,
    invalidates: ['adminReservationList', 'adminCapacityList'],
    showsErrors: true,
  })
  const gpus = Number(count) * (vmType(type)?.gpuCount ?? 0)
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Sell reservation"
      action="Sell reservation"
      isWide
      {...submitProps(sell, undefined, onClose)}
      reason={problemOf({ project, chosenLocation, count, start, end, price })}
      commands={operatorCommands({
        cli: [
          `slipway admin reservation create --organization ${request.organization_id || 'ID'}`,
          `--billing-project ${request.billing_project_id || 'ID'} --type ${type} --location ${chosenLocation}`,
          `--count ${request.count} --start ${request.contract_start_date || 'TIME'}`,
          `--end ${request.contract_end_date || 'TIME'} --price ${request.usd_per_gpu_hour}`,
        ].join(' \\\n  '),
        path: '/reservations',
        body: request,
      })}
    >
      <div className="flex flex-col gap-1">
        <span className="text-sm font-medium">Billing project</span>
        <ProjectPicker projects={projects.data ?? []} value={project} onChange={setProject} />
      </div>
      <div className="grid gap-4 sm:grid-cols-2">
        <SelectField
          label="Type"
          value={type}
          onChange={(name) => setType(name as VmTypeName)}
          choices={vmTypes.map(({ name }) => ({ value: name, label: name }))}
        />
        <SelectField
          label="Location"
          value={chosenLocation}
          onChange={setLocation}
          choices={locationItems.map(({ name }) => ({ value: name, label: name }))}
        />
        <TextField label="Number of VMs" type="number" min={1} value={count} onChange={setCount} />
        <TextField
          label="USD per GPU-hour"
          type="number"
          min={0}
          step="0.01"
          value={price}
          onChange={setPrice}
        />
        <TextField label="Start (your local time)" type="datetime-local" value={start} onChange={setStart} />
        <TextField label="End (your local time)" type="datetime-local" value={end} onChange={setEnd} />
      </div>
      <p className="text-ink-muted">
        {gpus > 0 && price !== '' && (
          <>
            {plural(gpus, 'GPU')}:{' '}
            <b className="figures font-medium text-ink">{usd(gpus * Number(price))}/h</b> when all are
            delivered.{' '}
          </>
        )}
        GPUs are collected as they become free, beginning 24 hours before the start. No VMs are stopped to
        free GPUs. Only delivered GPUs are billed.
      </p>
    </FormDialog>
  )
}

interface FormValues {
  project: AdminProject | null
  chosenLocation: string
  count: string
  start: string
  end: string
  price: string
}

function problemOf({ project, chosenLocation, count, start, end, price }: FormValues): string | undefined {
  if (!project) return 'Choose the billing project'
  if (!chosenLocation) return 'Choose a location'
  if (!Number.isInteger(Number(count)) || Number(count) < 1) return 'Enter the number of VMs'
  if (!start || !end) return 'Choose the start and the end'
  if (Date.parse(end) <= Math.max(Date.parse(start), Date.now())) return 'The end must be after the start'
  return price === '' || Number(price) < 0 ? 'Enter the price' : undefined
}
