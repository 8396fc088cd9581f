import { type CapacityRequestCreate, isApiError, type VmCreate } from '@slipway/sdk'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useProjectId } from '../../api/me.ts'
import { useQuery } from '../../api/use-query.ts'
import { QueueEstimate } from '../../features/capacity/queue-estimate.tsx'
import { plural } from '../../lib/format.ts'
import { suggestName } from '../../lib/names.ts'
import { projectCommands } from '../../lib/shell.ts'
import { ShowAs } from '../../ui/commands.tsx'
import { CheckField, SelectField } from '../../ui/field.tsx'
import { Sentence } from '../../ui/no-break.tsx'
import { queueCommand } from './commands.ts'
import type { GroupCreate } from './draft.ts'

const dayMs = 86_400_000
const waitDays = ['1', '7', '30']
const estimatePollMs = 60_000

/** The choices of a capacity request, and the mutation that sends it. The button is in the summary of the form. */
export function useWaiting(request: VmCreate, group: GroupCreate | null, typeName: string) {
  const projectId = useProjectId()
  const navigate = useNavigate()
  const [days, setDays] = useState('7')
  const [isHeld, setHeld] = useState(false)
  const [isAnywhere, setAnywhere] = useState(false)
  const wait = useAction({
    run: (wanted: CapacityRequestCreate) => client.capacityRequestCreate({ project_id: projectId }, wanted),
    done: () => `${request.name} is waiting for ${group ? `${group.desired_count} × ` : ''}${typeName}`,
    invalidates: ['capacityRequestList'],
    showsErrors: true,
  })
  // With `any`, the server skips locations that cannot run the VMs.
  const inLocation = <Vm extends object>(vm: Vm): Vm => (isAnywhere ? { ...vm, location: 'any' } : vm)
  const wanted = (): CapacityRequestCreate => ({
    ...(group
      ? { instance_group: { ...group, vm: inLocation(group.vm ?? {}) } }
      : { vm: inLocation(request) }),
    until: new Date(Date.now() + Number(days) * dayMs).toISOString(),
    ...(isHeld && { on_available: 'hold' }),
  })
  const send = () =>
    wait.mutate(wanted(), {
      onSuccess: () => void navigate({ to: '/projects/$projectId/queue', params: { projectId } }),
    })
  return { wait, send, wanted, inLocation, days, setDays, isHeld, setHeld, isAnywhere, setAnywhere }
}

interface WaitForCapacityProps {
  /** The request for one VM. */
  request: VmCreate
  /** The request for several VMs; null for one. */
  group: GroupCreate | null
  names: Parameters<typeof queueCommand>[2]
  waiting: ReturnType<typeof useWaiting>
  /** The heading, which says what is out of stock. */
  title: string
  /** The other locations where the VMs could run. */
  otherLocations: string[]
  /** Why the request cannot be sent yet. */
  reason: string | undefined
}

/** Explains how to wait for a type that is out of stock, with the choices of the request. */
export function WaitForCapacity(props: WaitForCapacityProps) {
  const { request, group, names, waiting, title, otherLocations, reason } = props
  const { wanted, inLocation, days, setDays, isHeld, setHeld, isAnywhere, setAnywhere } = waiting
  const projectId = useProjectId()
  return (
    <section aria-label="Wait for capacity" className="card flex flex-col gap-4 p-4">
      <div>
        <h2 className="font-semibold">
          <Sentence text={title} />
        </h2>
        <p className="text-ink-muted">
          {group
            ? 'Wait in the queue: the group is created when its turn comes and all its VMs fit.'
            : 'Wait in the queue: the VM is created when its turn comes.'}{' '}
          Waiting is free. {!reason && <Queue request={request} />}
        </p>
      </div>
      <div className="grid items-start gap-4 sm:grid-cols-2">
        <SelectField
          label="Wait at most"
          value={days}
          onChange={setDays}
          choices={waitDays.map((value) => ({ value, label: plural(Number(value), 'day') }))}
        />
        <div className="flex flex-col gap-2 sm:pt-5">
          <CheckField
            label={`Hold the GPUs without creating the ${group ? 'group' : 'VM'}`}
            hint="When they are available, you have 15 minutes to claim them on the Queue page."
            isChecked={isHeld}
            onChange={setHeld}
          />
          {otherLocations.length > 0 && (
            <CheckField
              label="Any location"
              hint={`Also wait in ${otherLocations.join(', ')}.`}
              isChecked={isAnywhere}
              onChange={setAnywhere}
            />
          )}
        </div>
      </div>
      <ShowAs
        commands={projectCommands(projectId, {
          cli: queueCommand(
            inLocation(request),
            group && { ...group, vm: inLocation(group.vm ?? {}) },
            names,
            {
              days,
              isHeld,
            },
          ),
          path: '/capacity-requests',
          body: wanted(),
        })}
      />
    </section>
  )
}

/** The fields that the estimate needs. The others are omitted, so that typing in them sends no requests. */
const estimateFields = ['type', 'location', 'image', 'ssh_public_key', 'ssh_key_ids', 'instance_template_id']

/** Shows the queue. While the type is out of stock, a cost estimate fails with an error that describes the queue. */
function Queue({ request }: { request: VmCreate }) {
  const projectId = useProjectId()
  const [name] = useState(suggestName)
  const needed = Object.entries(request).filter(([member]) => estimateFields.includes(member))
  const vm = { ...Object.fromEntries(needed), name } as VmCreate
  const { data: queue } = useQuery({
    queryKey: ['estimateCreate', { project_id: projectId, vm }],
    queryFn: async ({ signal }) => {
      try {
        await client.estimateCreate({ project_id: projectId }, { vm }, { signal })
        return null
      } catch (error) {
        if (isApiError(error) && error.code === 'out_of_stock') return error.queue ?? null
        throw error
      }
    },
    refetchInterval: estimatePollMs,
  })
  return queue ? <QueueEstimate queue={queue} /> : null
}
