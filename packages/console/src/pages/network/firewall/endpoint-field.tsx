import { anywhere, parseCidr } from '@slipway/contract/cidr'
import type { FirewallEndpoint } from '@slipway/sdk'
import { useId, useState } from 'react'
import { readAll } from '../../../api/read.ts'
import { useEndpointNames } from '../../../api/resource-names.ts'
import { useQuery } from '../../../api/use-query.ts'
import { NameList } from '../../../features/name-fields/name-list.tsx'
import { Button, IconButton } from '../../../ui/button.tsx'
import { Icon } from '../../../ui/icon.tsx'

/**
 * The state of a list of endpoints (CIDR blocks, addresses, VMs, subnets or networks) and of the text field
 * below it.
 */
export function useEndpoints(projectId: string, given: FirewallEndpoint[]) {
  const [chosen, setChosen] = useState(given)
  const [text, setText] = useState('')
  const vms = useQuery(readAll('vmList', { project_id: projectId }))
  const subnets = useQuery(readAll('subnetList', { project_id: projectId }))
  const networks = useQuery(readAll('networkList', { project_id: projectId }))
  const named = [...(vms.data ?? []), ...(subnets.data ?? []), ...(networks.data ?? [])]
  const typed = endpointOf(text.trim(), named)
  return {
    chosen,
    setChosen,
    text,
    setText,
    names: named.map(({ name }) => name),
    problem:
      typed === null ? 'Enter an IP address, a CIDR block, or the name of a VM, subnet or network.' : '',
    /** The list, including valid text that has not been added yet. */
    all: typed ? [...chosen, typed] : chosen,
    add: () => {
      if (!typed) return
      setChosen([...chosen, typed])
      setText('')
    },
    /** Replaces the list, and discards the text. */
    replace: (endpoints: FirewallEndpoint[]) => {
      setChosen(endpoints)
      setText('')
    },
  }
}

/** Returns undefined for empty text, and null for invalid text. */
function endpointOf(
  text: string,
  named: { id: string; name: string }[],
): FirewallEndpoint | null | undefined {
  if (text === '') return undefined
  if (text === 'anywhere' || text === 'every VM') return { cidr: anywhere, resource_id: '' }
  const resource = named.find(({ name }) => name === text)
  if (resource) return { cidr: '', resource_id: resource.id }
  return parseCidr(text) ? { cidr: text, resource_id: '' } : null
}

interface EndpointFieldProps {
  label: string
  projectId: string
  endpoints: ReturnType<typeof useEndpoints>
  /** Describes the accepted values. */
  placeholder: string
  /** The user's address. If it is set, a button adds it. */
  myAddress?: string
  /** The ID of the network, if the field is for its own VMs. */
  localNetwork?: string
}

const idOf = ({ cidr, resource_id }: FirewallEndpoint): string => resource_id || cidr

export function EndpointField({
  label,
  projectId,
  endpoints,
  placeholder,
  myAddress = '',
  localNetwork = '',
}: EndpointFieldProps) {
  const id = useId()
  const nameOf = useEndpointNames(projectId)
  const { chosen, setChosen, text, setText, names, problem, add } = endpoints
  return (
    <fieldset className="flex min-w-0 flex-col gap-1">
      <legend className="mb-1 text-sm font-medium">{label}</legend>
      <ul className="flex flex-col gap-1">
        {chosen.map((endpoint, index) => {
          const value = endpoint.resource_id ? nameOf(endpoint.resource_id) : endpoint.cidr
          const isEveryVm = localNetwork !== '' && [anywhere, localNetwork].includes(idOf(endpoint))
          const words = isEveryVm
            ? `every VM (${value})`
            : endpoint.cidr === anywhere
              ? `anywhere (${value})`
              : value
          return (
            <li
              key={idOf(endpoint)}
              className="flex h-8 items-center justify-between gap-2 rounded-md bg-sunken pr-1 pl-2.5"
            >
              <span className="truncate">{words}</span>
              <IconButton
                label={`Remove ${words}`}
                icon={<Icon name="x" size={14} />}
                onClick={() => setChosen(chosen.filter((_, at) => at !== index))}
              />
            </li>
          )
        })}
      </ul>
      <div className="flex gap-2 max-sm:flex-wrap">
        <input
          aria-label={`${label}: add an IP address, CIDR block or name`}
          list={id}
          value={text}
          placeholder={placeholder}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return
            event.preventDefault()
            add()
          }}
          aria-invalid={problem ? true : undefined}
          aria-describedby={problem ? `${id}-note` : undefined}
          className={`h-8 w-full min-w-0 rounded-md border bg-surface px-2.5 [&::-webkit-calendar-picker-indicator]:hidden! ${problem ? 'border-red' : 'border-line-strong'}`}
        />
        <Button onClick={add} aria-label={`Add to ${label.toLowerCase()}`}>
          Add
        </Button>
        {myAddress && !chosen.some(({ cidr }) => cidr === myAddress) && (
          <Button
            onClick={() => setChosen([...chosen, { cidr: myAddress, resource_id: '' }])}
            aria-label={`Add my address ${myAddress} to ${label.toLowerCase()}`}
          >
            My address
          </Button>
        )}
        <NameList id={id} names={['anywhere', 'every VM', ...names]} text={text} />
      </div>
      {problem && (
        <p id={`${id}-note`} className="text-sm text-red-text">
          {problem}
        </p>
      )}
    </fieldset>
  )
}
