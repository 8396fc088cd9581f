import type { ExpiryAction } from '@slipway/contract/states'
import { type Vm, vmType, vmTypes } from '@slipway/sdk'
import { type ReactNode, useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useWhyNot } from '../../api/me.ts'
import { usePriceOf } from '../../api/prices.ts'
import { whyProtected } from '../../features/annotations.tsx'
import { plural, usd } from '../../lib/format.ts'
import { stateWord } from '../../lib/state-words.ts'
import { expiryChoices, ttlChoices } from '../../lib/ttl.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, FormDialog, submitting } from '../../ui/dialog.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Section } from '../../ui/page.tsx'

export function DangerZone({ vm }: { vm: Vm }) {
  const [open, setOpen] = useState<'delete' | 'type' | 'ttl' | ''>('')
  const whyNot = useWhyNot('member')
  const target = { project_id: vm.project_id, vm_id: vm.id }
  const remove = useOperation({
    projectId: vm.project_id,
    run: () => client.vmDelete(target),
    done: () => `Deleted ${vm.name}`,
    failed: () => `${vm.name} could not be deleted`,
    touches: ['vmGet', 'vmList', 'quotaList'],
    showsErrors: true,
  })
  const dataDisks = vm.disks.filter(({ attachment_type }) => attachment_type === 'data')
  const typeReason =
    whyNot ??
    (vm.state === 'STATE_SHUTOFF'
      ? undefined
      : `The type can change while the VM is shut off; it is ${stateWord(vm.state)}.`)
  return (
    <Section title="Change or delete">
      <div className="card divide-y divide-line">
        <Line text="Change the time to live, counted from now.">
          <Button reason={whyNot} onClick={() => setOpen('ttl')}>
            Time to live
          </Button>
        </Line>
        <Line text="Change the type to a larger or smaller one of the same GPU.">
          <Button reason={typeReason} onClick={() => setOpen('type')}>
            Change type
          </Button>
        </Line>
        <Line text="Delete the VM with its OS disk. Data disks stay.">
          <Button
            kind="danger"
            reason={
              whyNot ??
              (vm.state === 'STATE_DELETING' ? 'It is being deleted.' : undefined) ??
              whyProtected(vm)
            }
            onClick={() => setOpen('delete')}
          >
            Delete VM
          </Button>
        </Line>
      </div>
      {open === 'delete' && (
        <Confirm
          isOpen
          onClose={() => setOpen('')}
          title={`Delete ${vm.name}`}
          action="Delete VM"
          {...submitting(remove, undefined, () => setOpen(''))}
          nameToType={vm.name}
        >
          <p>
            <b className="font-medium text-ink">Goes:</b> the VM, its OS disk with everything on it, and its
            addresses.
          </p>
          <p className="mt-1">
            <b className="font-medium text-ink">Stays:</b>{' '}
            {dataDisks.length === 0
              ? 'nothing; no data disk is attached.'
              : `${plural(dataDisks.length, 'data disk')}: ${dataDisks.map(({ name }) => name).join(', ')}.`}
          </p>
        </Confirm>
      )}
      {open === 'type' && <TypeDialog vm={vm} onClose={() => setOpen('')} />}
      {open === 'ttl' && <TtlDialog vm={vm} onClose={() => setOpen('')} />}
    </Section>
  )
}

function Line({ text, children }: { text: string; children: ReactNode }) {
  return (
    <div className="flex items-center justify-between gap-4 px-4 py-2.5">
      <span className="text-ink-muted">{text}</span>
      {children}
    </div>
  )
}

function TypeDialog({ vm, onClose }: { vm: Vm; onClose: () => void }) {
  const usdPerHour = usePriceOf(vm.project_id)
  const priceOf = (name: string) => `${usd(usdPerHour(name))}/h`
  const choices = vmTypes.filter(({ family, name }) => family === vmType(vm.type)?.family && name !== vm.type)
  const [type, setType] = useState(choices[0]?.name ?? '')
  const change = useOperation({
    projectId: vm.project_id,
    run: () => client.vmUpdate({ project_id: vm.project_id, vm_id: vm.id }, { type }),
    done: () => `${vm.name} is now ${type}`,
    failed: () => `The type of ${vm.name} did not change`,
    touches: ['vmGet', 'vmList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Change the type of ${vm.name}`}
      action="Change type"
      {...submitting(change, undefined, onClose)}
    >
      <SelectField
        label="Type"
        value={type}
        onChange={setType}
        choices={choices.map(({ name, cpuCores, memoryGb }) => ({
          value: name,
          label: `${name} (${cpuCores} cores, ${memoryGb} GB, ${priceOf(name)})`,
        }))}
        hint="It gets its GPUs when it starts, and costs nothing until then."
      />
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        <dt className="text-ink-muted">Now</dt>
        <dd>
          {vm.type}, {priceOf(vm.type)}
        </dd>
        <dt className="text-ink-muted">Then</dt>
        <dd>
          {type}, {priceOf(type)}
        </dd>
      </dl>
    </FormDialog>
  )
}

function TtlDialog({ vm, onClose }: { vm: Vm; onClose: () => void }) {
  const [hours, setHours] = useState('4')
  const [onExpiry, setOnExpiry] = useState<ExpiryAction>(vm.on_expiry)
  const change = useOperation({
    projectId: vm.project_id,
    run: () =>
      client.vmUpdate(
        { project_id: vm.project_id, vm_id: vm.id },
        { ttl_seconds: Number(hours) * 3600, on_expiry: onExpiry },
      ),
    done: () => `${vm.name} ends in ${hours} h`,
    failed: () => `The time to live of ${vm.name} did not change`,
    touches: ['vmGet', 'vmList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Time to live of ${vm.name}`}
      action="Set time to live"
      {...submitting(change, undefined, onClose)}
    >
      <SelectField label="From now" value={hours} onChange={setHours} choices={ttlChoices} />
      <SelectField
        label="Then"
        value={onExpiry}
        onChange={(value) => setOnExpiry(value as ExpiryAction)}
        choices={expiryChoices}
      />
    </FormDialog>
  )
}
