import { type ExpiryAction, vmActions } from '@slipway/contract/states'
import { type Vm, vmType, vmTypes } from '@slipway/sdk'
import { useState } from 'react'
import { useOperation } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useWhyNot } from '../../api/me.ts'
import { usePriceOf } from '../../api/prices.ts'
import { TtlHours } from '../../features/ttl-hours.tsx'
import { count, usd } from '../../lib/format.ts'
import { projectCommands, shellQuote } from '../../lib/shell.ts'
import { stateWord } from '../../lib/states.ts'
import { expiryChoices, ttlArgument, ttlProblem, ttlSeconds } from '../../lib/ttl.ts'
import { memoryText } from '../../lib/units/sizes.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog, submitProps } from '../../ui/dialog.tsx'
import { SelectField } from '../../ui/field.tsx'
import { NoBreak } from '../../ui/no-break.tsx'
import { Section } from '../../ui/page.tsx'
import { Timestamp } from '../../ui/time.tsx'

/** Changes the expiry or the type of a VM. */
export function ChangeVm({ vm }: { vm: Vm }) {
  const [open, setOpen] = useState<'type' | 'ttl' | ''>('')
  const whyNot = useWhyNot('member')
  const whyNotType =
    whyNot ??
    (vm.state === 'STATE_SHUTOFF'
      ? undefined
      : vmActions.STOP.from.includes(vm.state)
        ? `To change the type, stop the VM first. It is ${stateWord(vm.state)}.`
        : 'The type can be changed when the VM is stopped.')
  return (
    <Section title="Settings">
      <div className="card divide-y divide-line">
        <SettingRow
          text="Stop or delete the VM automatically at a set time, or remove its expiry."
          action="Set expiry"
          reason={whyNot}
          onClick={() => setOpen('ttl')}
        />
        <SettingRow
          text="Change to a larger or smaller type with the same GPU model."
          action="Change type"
          reason={whyNotType}
          onClick={() => setOpen('type')}
        />
      </div>
      {open === 'type' && <TypeDialog vm={vm} onClose={() => setOpen('')} />}
      {open === 'ttl' && <TtlDialog vm={vm} onClose={() => setOpen('')} />}
    </Section>
  )
}

interface SettingRowProps {
  text: string
  action: string
  reason: string | undefined
  onClick: () => void
}

/** Shows as text why the button is disabled, because users do not always hover over it. */
function SettingRow({ text, action, reason, onClick }: SettingRowProps) {
  return (
    <div className="flex items-center justify-between gap-4 px-4 py-2.5">
      <div>
        <p>{text}</p>
        {reason && <p className="text-sm text-ink-muted">{reason}</p>}
      </div>
      <Button reason={reason} onClick={onClick}>
        {action}
      </Button>
    </div>
  )
}

function TypeDialog({ vm, onClose }: { vm: Vm; onClose: () => void }) {
  const usdPerHour = usePriceOf(vm.project_id)
  const priceOf = (name: string) => `${usd(usdPerHour(name))}/h`
  const choices = vmTypes.filter(({ family, name }) => family === vmType(vm.type)?.family && name !== vm.type)
  const [type, setType] = useState(choices[0]?.name ?? '')
  const more = (usdPerHour(type) ?? Number.NaN) - (usdPerHour(vm.type) ?? Number.NaN)
  const difference = more ? `(${usd(Math.abs(more))}/h ${more < 0 ? 'less' : 'more'})` : ''
  const change = useOperation({
    projectId: vm.project_id,
    run: () => client.vmUpdate({ project_id: vm.project_id, vm_id: vm.id }, { type }),
    done: () => `Changed the type of ${vm.name} to ${type}`,
    failed: () => `Could not change the type of ${vm.name}`,
    invalidates: ['vmGet', 'vmList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Change type of ${vm.name}`}
      action="Change type"
      {...submitProps(change, undefined, onClose)}
      commands={projectCommands(vm.project_id, {
        cli: `slipway vm resize ${shellQuote(vm.name)} --type ${type}`,
        method: 'PATCH',
        path: `/vms/${vm.id}`,
        body: { type },
        terraform: 'vm',
        changes: vm.name,
      })}
    >
      <SelectField
        label="Type"
        value={type}
        onChange={setType}
        choices={choices.map(({ name }) => ({ value: name, label: name }))}
        hint="The VM gets its GPUs when it starts. It is not billed until then."
      />
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        <dt className="text-ink-muted">Current type</dt>
        <dd>
          {vm.type}, {factsOf(vm.type)}
          <span className="block">{priceOf(vm.type)}</span>
        </dd>
        <dt className="text-ink-muted">New type</dt>
        <dd>
          {type}, {factsOf(type)}
          <span className="block">
            {priceOf(type)} {difference && <NoBreak>{difference}</NoBreak>}
          </span>
        </dd>
      </dl>
    </FormDialog>
  )
}

function factsOf(name: string): string {
  const type = vmType(name)
  return type ? `${type.cpuCores} cores, ${memoryText(type)}` : ''
}

/** Returns which data of the VM its expiry deletes; undefined if there is none. */
function lossText({ scratch_gb }: Vm, onExpiry: ExpiryAction): string | undefined {
  const size = `${count(scratch_gb)} GB`
  if (onExpiry === 'delete')
    return scratch_gb > 0
      ? `The OS disk and ${size} of local scratch data will be lost.`
      : 'The OS disk will be lost.'
  return scratch_gb > 0 ? `${size} of local scratch data will be lost.` : undefined
}

function TtlDialog({ vm, onClose }: { vm: Vm; onClose: () => void }) {
  const [hours, setHours] = useState('4')
  const [onExpiry, setOnExpiry] = useState<ExpiryAction>(vm.on_expiry)
  const isNever = hours === ''
  const request = { ttl_seconds: ttlSeconds(hours), ...(!isNever && { on_expiry: onExpiry }) }
  const change = useOperation({
    projectId: vm.project_id,
    run: () => client.vmUpdate({ project_id: vm.project_id, vm_id: vm.id }, request),
    done: () => (isNever ? `${vm.name} no longer expires` : `${vm.name} expires in ${hours} h`),
    failed: () => `Could not set the expiry of ${vm.name}`,
    invalidates: ['vmGet', 'vmList'],
    showsErrors: true,
  })
  const options = isNever ? '--never' : `--ttl ${ttlArgument(request.ttl_seconds)} --on-expiry ${onExpiry}`
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Set expiry of ${vm.name}`}
      action="Set expiry"
      {...submitProps(change, undefined, onClose)}
      reason={ttlProblem(hours)}
      commands={projectCommands(vm.project_id, {
        cli: `slipway vm extend ${shellQuote(vm.name)} ${options}`,
        method: 'PATCH',
        path: `/vms/${vm.id}`,
        body: request,
      })}
    >
      <p className="text-ink-muted">
        {vm.expires_at ? (
          <>
            Current expiry: <Timestamp iso={vm.expires_at} /> ({vm.on_expiry} the VM)
          </>
        ) : (
          'The VM does not expire.'
        )}
      </p>
      <TtlHours
        label="Expires in"
        value={hours}
        onChange={setHours}
        canBeNever={vm.expires_at !== ''}
        startsNow
      />
      {!isNever && (
        <SelectField
          label="On expiry"
          value={onExpiry}
          onChange={(value) => setOnExpiry(value as ExpiryAction)}
          choices={expiryChoices}
          hint={lossText(vm, onExpiry)}
        />
      )}
    </FormDialog>
  )
}
