import { anywhere } from '@slipway/contract/cidr'
import type { FirewallEndpoint } from '@slipway/sdk'
import { X } from 'lucide-react'
import { useId, useState } from 'react'
import { readAll } from '../../../api/read.ts'
import { useEndpointNames } from '../../../api/resource-names.ts'
import { useQuery } from '../../../api/use-query.ts'
import { Button, IconButton } from '../../../ui/button.tsx'

interface EndpointFieldProps {
  label: string
  projectId: string
  value: FirewallEndpoint[]
  onChange: (value: FirewallEndpoint[]) => void
}

/** Edits a list of places: blocks, addresses, VMs, subnets or networks. */
export function EndpointField({ label, projectId, value, onChange }: EndpointFieldProps) {
  const id = useId()
  const [text, setText] = useState('')
  const nameOf = useEndpointNames(projectId)
  const vms = useQuery(readAll('vmList', { project_id: projectId }))
  const subnets = useQuery(readAll('subnetList', { project_id: projectId }))
  const networks = useQuery(readAll('networkList', { project_id: projectId }))
  const named = [
    ...(vms.data ?? []).map((vm) => ({ id: vm.id, name: vm.name })),
    ...(subnets.data ?? []).map((subnet) => ({ id: subnet.id, name: subnet.name })),
    ...(networks.data ?? []).map((network) => ({ id: network.id, name: network.name })),
  ]
  const add = () => {
    const wanted = text.trim()
    if (wanted === '') return
    const resource = named.find(({ name }) => name === wanted)
    const cidr = wanted === 'anywhere' ? anywhere : wanted
    onChange([...value, resource ? { resource_id: resource.id, cidr: '' } : { resource_id: '', cidr }])
    setText('')
  }
  return (
    <fieldset className="flex min-w-0 flex-col gap-1">
      <legend className="mb-1 text-sm font-medium">{label}</legend>
      <ul className="flex flex-col gap-1">
        {value.map((endpoint, index) => {
          const words = endpoint.resource_id
            ? nameOf(endpoint.resource_id)
            : endpoint.cidr === anywhere
              ? `anywhere (${anywhere})`
              : endpoint.cidr
          return (
            <li
              key={`${endpoint.cidr}${endpoint.resource_id}`}
              className="flex h-8 items-center justify-between gap-2 rounded-md bg-sunken pr-1 pl-2.5"
            >
              <span className="truncate">{words}</span>
              <IconButton
                label={`Remove ${words}`}
                icon={<X size={14} />}
                onClick={() => onChange(value.filter((_, at) => at !== index))}
              />
            </li>
          )
        })}
      </ul>
      <div className="flex gap-2">
        <input
          aria-label={`${label}: add an address, block or name`}
          list={id}
          value={text}
          placeholder="203.0.113.0/24 or a name"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return
            event.preventDefault()
            add()
          }}
          className="h-8 w-full min-w-0 rounded-md border border-line-strong bg-surface px-2.5"
        />
        <Button onClick={add} aria-label={`Add to ${label.toLowerCase()}`}>
          Add
        </Button>
        <datalist id={id}>
          <option value="anywhere" />
          {named.map((each) => (
            <option key={each.id} value={each.name} />
          ))}
        </datalist>
      </div>
    </fieldset>
  )
}
