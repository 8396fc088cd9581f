import { addressCount, cidrContains, parseCidr } from '@slipway/contract/cidr'
import type { Network, Subnet } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../../api/actions.ts'
import { client } from '../../../api/client.ts'
import { read, readAll } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { plural } from '../../../lib/format.ts'
import { nameProblem } from '../../../lib/names.ts'
import { projectCommands, shellQuote } from '../../../lib/shell.ts'
import { Confirm, FormDialog, submitProps } from '../../../ui/dialog.tsx'
import { SelectField, TextField } from '../../../ui/field.tsx'

interface DialogProps {
  projectId: string
  onClose: () => void
}

export function NetworkDialog({ projectId, onClose }: DialogProps) {
  const [name, setName] = useState('')
  const [cidr, setCidr] = useState('10.20.0.0/16')
  const request = { name, cidr: cidr.trim() }
  const create = useAction({
    run: () => client.networkCreate({ project_id: projectId }, request),
    done: () => `Created network ${name}`,
    invalidates: ['networkList', 'subnetList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Create network"
      action="Create network"
      {...submitProps(create, undefined, onClose)}
      reason={name ? nameProblem(name) || undefined : 'Enter a name'}
      commands={projectCommands(projectId, {
        cli: `slipway network create ${shellQuote(name || 'NAME')} --cidr ${shellQuote(request.cidr)}`,
        path: '/vpc/networks',
        body: request,
        terraform: 'network',
      })}
    >
      <TextField label="Name" value={name} onChange={setName} problem={nameProblem(name)} autoFocus />
      <TextField
        label="CIDR block"
        value={cidr}
        onChange={setCidr}
        hint="A private IPv4 block from /16 to /28 that does not overlap another network."
        isMono
      />
    </FormDialog>
  )
}

const defaultPrefix = 20

/** Returns the first block of a network that no subnet uses; empty if there is none. */
function freeBlock(networkCidr: string, subnets: Subnet[]): string {
  const network = parseCidr(networkCidr)
  if (!network) return ''
  const prefix = Math.max(defaultPrefix, network.prefix)
  const end = network.base + addressCount(network.prefix)
  for (let base = network.base; base < end; base += addressCount(prefix)) {
    const block = `${[24, 16, 8, 0].map((bits) => (base >>> bits) & 255).join('.')}/${prefix}`
    if (!subnets.some(({ cidr }) => cidrContains(block, cidr) || cidrContains(cidr, block))) return block
  }
  return ''
}

export function SubnetDialog({ projectId, network, onClose }: DialogProps & { network: Network }) {
  const locations = useQuery(read('locationList', { params: { project_id: projectId } }))
  const [name, setName] = useState('')
  const subnets = useQuery(readAll('subnetList', { project_id: projectId })).data ?? []
  const [typedCidr, setCidr] = useState<string | null>(null)
  const cidr = typedCidr ?? freeBlock(network.cidr, subnets)
  const [chosenLocation, setChosenLocation] = useState('')
  const location = chosenLocation || locations.data?.items[0]?.name || ''
  const problem = nameProblem(name) || (location ? '' : 'Loading locations')
  const request = { name, cidr: cidr.trim(), vpc_network_id: network.id, location }
  const create = useAction({
    run: () => client.subnetCreate({ project_id: projectId }, request),
    done: () => `Created subnet ${name}`,
    invalidates: ['networkList', 'subnetList'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={`Add a subnet to ${network.name}`}
      action="Add subnet"
      {...submitProps(create, undefined, onClose)}
      reason={name && cidr ? problem || undefined : 'Enter a name and a CIDR block'}
      commands={projectCommands(projectId, {
        cli: `slipway subnet create ${shellQuote(name || 'NAME')} --network ${shellQuote(network.name)} --cidr ${shellQuote(request.cidr || 'CIDR')} --location ${location}`,
        path: '/vpc/subnets',
        body: request,
        terraform: 'subnet',
      })}
    >
      <TextField label="Name" value={name} onChange={setName} problem={nameProblem(name)} autoFocus />
      <TextField
        label="CIDR block"
        value={cidr}
        onChange={setCidr}
        hint={`A block inside ${network.cidr}, /28 or larger.`}
        isMono
      />
      <SelectField
        label="Location"
        value={location}
        onChange={setChosenLocation}
        choices={(locations.data?.items ?? []).map(({ name }) => ({ value: name, label: name }))}
      />
    </FormDialog>
  )
}

export function DeleteDialog({
  projectId,
  network,
  subnet,
  onClose,
}: DialogProps & { network?: Network; subnet?: Subnet }) {
  const id = network?.id ?? subnet?.id
  const rules = useQuery(readAll('firewallRuleList', { project_id: projectId })).data ?? []
  const referring = rules.filter(
    (rule) =>
      rule.vpc_network_id === id ||
      [...rule.sources, ...rule.destinations].some(({ resource_id }) => resource_id === id),
  ).length
  const what = network ? `network ${network.name}` : `subnet ${subnet?.name}`
  const remove = useAction({
    run: (): Promise<unknown> =>
      network
        ? client.networkDelete({ project_id: projectId, network_id: network.id })
        : client.subnetDelete({ project_id: projectId, subnet_id: subnet!.id }),
    done: () => `Deleted ${what}`,
    invalidates: ['networkList', 'subnetList', 'firewallRuleList'],
    showsErrors: true,
  })
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`Delete ${what}`}
      action={network ? 'Delete network' : 'Delete subnet'}
      commands={projectCommands(projectId, {
        cli: network
          ? `slipway network delete ${shellQuote(network.name)}`
          : `slipway subnet delete ${shellQuote(subnet?.name ?? '')}`,
        method: 'DELETE',
        path: network ? `/vpc/networks/${network.id}` : `/vpc/subnets/${subnet?.id}`,
      })}
      {...submitProps(remove, undefined, onClose)}
    >
      <p>
        The {network ? 'network' : 'subnet'}{' '}
        <span className="mono text-ink">{network?.cidr ?? subnet?.cidr}</span> will be deleted.
        {referring > 0 && ` ${plural(referring, 'firewall rule')} will no longer match its traffic.`}
      </p>
    </Confirm>
  )
}
