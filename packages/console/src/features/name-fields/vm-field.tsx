import type { Vm } from '@slipway/sdk'
import { type ComponentProps, useId } from 'react'
import { count } from '../../lib/format.ts'
import { SelectField, TextField } from '../../ui/field.tsx'
import { NameList } from './name-list.tsx'

/** A longer list is slow to scroll, so the user types the name of the VM instead. */
const maxInSelect = 20

type VmFieldProps = ComponentProps<typeof SelectField> & {
  vms: Pick<Vm, 'id' | 'name'>[]
  placeholder?: string
  autoFocus?: boolean
}

/** Chooses a VM. The value is the ID of a VM, a choice of the list, or typed text that is not the name of a VM. */
export function VmField({
  vms,
  placeholder = `Search ${count(vms.length)} VMs by name`,
  autoFocus = false,
  ...select
}: VmFieldProps) {
  const listId = useId()
  const { label, hint, value, onChange } = select
  if (vms.length <= maxInSelect) return <SelectField {...select} />
  const text = vms.find(({ id }) => id === value)?.name ?? value
  const typed = text.trim()
  const idOf = (name: string) => vms.find((vm) => vm.name === name)?.id
  return (
    <>
      <TextField
        label={label}
        hint={hint}
        list={listId}
        value={text}
        onChange={(next) => onChange(idOf(next.trim()) ?? next)}
        placeholder={placeholder}
        problem={vms.some(({ name }) => name.includes(typed)) ? '' : 'No matching VM.'}
        autoComplete="off"
        autoFocus={autoFocus}
      />
      <NameList id={listId} names={vms.map(({ name }) => name)} text={text} />
    </>
  )
}
