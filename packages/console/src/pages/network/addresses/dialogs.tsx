import type { Address, Vm } from '@slipway/sdk'
import { useState } from 'react'
import { useAction, useOperation } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { usePriceOf } from '../../../api/prices.ts'
import { read } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { VmField } from '../../../features/name-fields/vm-field.tsx'
import { count, usd } from '../../../lib/format.ts'
import { nameProblem } from '../../../lib/names.ts'
import { projectCommands, shellQuote } from '../../../lib/shell.ts'
import { Confirm, FormDialog, submitProps } from '../../../ui/dialog.tsx'
import { SelectField, TextField } from '../../../ui/field.tsx'
import { NoBreak } from '../../../ui/no-break.tsx'

interface DialogProps {
  projectId: string
  onClose: () => void
}

const invalidates = ['addressList', 'vmList', 'vmGet'] as const

/** The choice of a free address in a location, instead of the current address of a VM. */
const anyFree = ''
const publicOf = (vm: Vm) => vm.network_interfaces[0]?.ips[0]?.public_ipv4

/** Returns the choice of a VM with its address: "trainer-2 (198.18.24.93)". */
function choiceOf(vm: Vm) {
  const address = publicOf(vm)?.address
  return { value: vm.id, label: address ? `${vm.name} (${address})` : vm.name }
}

/** Returns the price of a reserved address that no running VM uses, for example " (0.0040 USD/h)"; empty if it is unknown. */
function useIdlePrice(projectId: string): string {
  const price = usePriceOf(projectId)('reserved-address')
  return price === undefined ? '' : ` (${usd(price)}/h)`
}

export function ReserveDialog({ projectId, vms, onClose }: DialogProps & { vms: Vm[] }) {
  const locations = useQuery(read('locationList', { params: { project_id: projectId } }))
  const [name, setName] = useState('')
  const [chosenVm, setChosenVm] = useState(anyFree)
  const [chosenLocation, setChosenLocation] = useState('')
  const dynamic = vms.filter((vm) => publicOf(vm)?.type === 'dynamic')
  const vmId = dynamic.find(({ id }) => id === chosenVm)?.id ?? anyFree
  const location = chosenLocation || locations.data?.items[0]?.name || ''
  const isVmMissing = chosenVm !== anyFree && vmId === anyFree
  const problem = isVmMissing ? 'Choose a VM' : chosenVm === anyFree && !location ? 'Loading locations' : ''
  const request = { name, ...(vmId === anyFree ? { location } : { vm_id: vmId }) }
  const reserve = useAction({
    run: () => client.addressCreate({ project_id: projectId }, request),
    done: () => `Reserved address ${name}`,
    invalidates: [...invalidates],
    showsErrors: true,
  })
  const idlePrice = useIdlePrice(projectId)
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Reserve address"
      action="Reserve address"
      {...submitProps(reserve, undefined, onClose)}
      reason={name ? nameProblem(name) || problem || undefined : 'Enter a name'}
      commands={projectCommands(projectId, {
        cli: `slipway address create ${shellQuote(name || 'NAME')} ${
          vmId === anyFree ? `--location ${location}` : `--vm ${vmId}`
        }`,
        path: '/vpc/addresses',
        body: request,
        terraform: 'address',
      })}
    >
      <TextField label="Name" value={name} onChange={setName} problem={nameProblem(name)} autoFocus />
      <VmField
        label="Address"
        vms={dynamic}
        value={chosenVm}
        onChange={setChosenVm}
        placeholder={`New address, or search ${count(dynamic.length)} VMs by name`}
        choices={[
          { value: anyFree, label: 'New address' },
          ...dynamic.map((vm) => ({ value: vm.id, label: `${publicOf(vm)?.address} (${vm.name})` })),
        ]}
        hint={`A reserved address is billed while no running VM has it${idlePrice}.`}
      />
      {chosenVm === anyFree && (
        <SelectField
          label="Location"
          value={location}
          onChange={setChosenLocation}
          choices={(locations.data?.items ?? []).map((each) => ({ value: each.name, label: each.name }))}
        />
      )}
    </FormDialog>
  )
}

interface AddressDialogProps extends DialogProps {
  address: Address
}

export function AssignDialog({ projectId, vms, address, onClose }: AddressDialogProps & { vms: Vm[] }) {
  const choices = vms.filter(({ id, location }) => location === address.location && id !== address.vm_id)
  const [chosen, setChosen] = useState('')
  const vm = choices.find(({ id }) => id === chosen)
  const isMove = address.vm_id !== ''
  const verb = isMove ? 'Move' : 'Assign'
  const holder = vms.find(({ id }) => id === address.vm_id)?.name ?? 'The VM that has it now'
  const replaced = vm && publicOf(vm)
  const assign = useOperation({
    projectId,
    run: () =>
      client.addressAssign({ project_id: projectId, address_id: address.id }, { vm_id: vm?.id ?? '' }),
    done: () => `${isMove ? 'Moved' : 'Assigned'} ${address.name} to ${vm?.name}`,
    failed: () => `Could not ${verb.toLowerCase()} ${address.name}`,
    invalidates: [...invalidates],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`${verb} address ${address.name} (${address.address}) to ${isMove ? 'another VM' : 'a VM'}`}
      action={`${verb} address`}
      {...submitProps(assign, undefined, onClose)}
      reason={
        choices.length === 0 ? `There is no other VM in ${address.location}` : vm ? undefined : 'Choose a VM'
      }
      commands={
        vm &&
        projectCommands(projectId, {
          cli: `slipway address assign ${shellQuote(address.name)} ${shellQuote(vm.name)}`,
          path: `/vpc/addresses/${address.id}/assign`,
          body: { vm_id: vm.id },
        })
      }
    >
      <VmField
        label="VM"
        vms={choices}
        value={chosen}
        onChange={setChosen}
        autoFocus
        hint={`Choose a VM in ${address.location}. If it has an address, this one replaces it.`}
        choices={[{ value: '', label: 'Choose a VM' }, ...choices.map(choiceOf)]}
      />
      {vm && (
        <p>
          <NoBreak>{vm.name}</NoBreak> will get <span className="mono">{address.address}</span>
          {replaced?.type === 'dynamic' && (
            <>
              {' '}
              and permanently lose <span className="mono">{replaced.address}</span>
            </>
          )}
          {replaced?.type === 'static' && (
            <>
              . <span className="mono">{replaced.address}</span> stays reserved, and is billed while no
              running VM has it
            </>
          )}
          .
          {isMove && (
            <>
              {' '}
              <NoBreak>{holder}</NoBreak> will get a dynamic address.
            </>
          )}{' '}
          Open connections to {isMove ? 'both VMs' : 'the VM'} will be closed.
        </p>
      )}
    </FormDialog>
  )
}

export function UnassignDialog({ projectId, address, onClose }: AddressDialogProps) {
  const vm = useQuery(read('vmGet', { params: { project_id: projectId, vm_id: address.vm_id } })).data
  const idlePrice = useIdlePrice(projectId)
  const unassign = useOperation({
    projectId,
    run: () => client.addressUnassign({ project_id: projectId, address_id: address.id }),
    done: () => `Unassigned ${address.name}`,
    failed: () => `Could not unassign ${address.name}`,
    invalidates: [...invalidates],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Unassign address ${address.name}`}
      action="Unassign address"
      commands={projectCommands(projectId, {
        cli: `slipway address unassign ${shellQuote(address.name)}`,
        path: `/vpc/addresses/${address.id}/unassign`,
      })}
      {...submitProps(unassign, undefined, onClose)}
    >
      <p>
        <NoBreak>{vm?.name ?? 'The VM'}</NoBreak> will get a dynamic address, and open connections to it will
        be closed. The project keeps <span className="mono">{address.address}</span>, which is billed while no
        running VM has it{idlePrice}.
      </p>
    </Confirm>
  )
}

export function DeleteDialog({ projectId, address, onClose }: AddressDialogProps) {
  const remove = useAction({
    run: () => client.addressDelete({ project_id: projectId, address_id: address.id }),
    done: () => `Deleted address ${address.name}`,
    invalidates: [...invalidates],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Delete address ${address.name}`}
      action="Delete address"
      commands={projectCommands(projectId, {
        cli: `slipway address delete ${shellQuote(address.name)}`,
        method: 'DELETE',
        path: `/vpc/addresses/${address.id}`,
      })}
      {...submitProps(remove, undefined, onClose)}
    >
      <p>
        <span className="mono">{address.address}</span> will be released and may be assigned to any VM. You
        cannot get it back.
      </p>
    </Confirm>
  )
}
