import { type Vm, vmStates } from '@slipway/sdk'
import { fitsSelector, LabelFilter } from '../../features/label-filter.tsx'
import { stateWord } from '../../lib/states.ts'
import { FilterInput, Select } from '../../ui/field.tsx'

export function matches(
  vm: Vm,
  { q = '', state = '', type = '', location = '', labels = '' }: Record<string, string>,
): boolean {
  if (state && stateWord(vm.state) !== state) return false
  if (type && vm.type !== type) return false
  if (location && vm.location !== location) return false
  if (!fitsSelector(vm, labels)) return false
  const text = q.toLowerCase()
  return !text || `${vm.name} ${vm.id} ${vm.ssh_destination}`.toLowerCase().includes(text)
}

export function Filters({
  vms,
  search,
  setSearch,
}: {
  vms: Vm[]
  search: Record<string, string>
  setSearch: (changes: Record<string, string>) => void
}) {
  const choices = (name: string, values: string[]) => [
    { value: '', label: `Any ${name}` },
    ...[...new Set(values)].sort().map((value) => ({ value, label: value })),
  ]
  const present = new Set(vms.map((vm) => stateWord(vm.state)))
  return (
    <>
      <FilterInput
        label="Filter by name, address or ID"
        value={search.q ?? ''}
        onChange={(q) => setSearch({ q })}
      />
      <LabelFilter value={search.labels ?? ''} onChange={(labels) => setSearch({ labels })} />
      <Select
        isSmall
        label="State"
        value={search.state ?? ''}
        onChange={(state) => setSearch({ state })}
        choices={choices(
          'state',
          vmStates.map(stateWord).filter((word) => present.has(word) || search.state === word),
        )}
      />
      <Select
        isSmall
        label="Type"
        value={search.type ?? ''}
        onChange={(type) => setSearch({ type })}
        choices={choices('type', [...vms.map((vm) => vm.type), ...(search.type ? [search.type] : [])])}
      />
      <Select
        isSmall
        label="Location"
        value={search.location ?? ''}
        onChange={(location) => setSearch({ location })}
        choices={choices('location', [
          ...vms.map((vm) => vm.location),
          ...(search.location ? [search.location] : []),
        ])}
      />
    </>
  )
}
