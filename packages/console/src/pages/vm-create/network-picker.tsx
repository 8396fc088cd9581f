import type { Network, Subnet } from '@slipway/sdk'
import { SelectField } from '../../ui/field.tsx'

/** The network that every project starts with. */
const defaultNetwork = 'default-vpc-network'

interface NetworkPickerProps {
  networks: Network[]
  /** The subnets of the chosen location. */
  subnets: Subnet[]
  value: string
  onChange: (subnetId: string) => void
}

const networkOf = (subnet: Subnet, networks: Network[]) =>
  networks.find(({ id }) => id === subnet.vpc_network_id)?.name ?? ''

const oldestFirst = (subnets: Subnet[]) => subnets.toSorted((a, b) => a.id.localeCompare(b.id))

/** Returns the subnet that the server uses by default: the default network's subnet, or else the oldest. */
export function defaultSubnet(subnets: Subnet[], networks: Network[]): Subnet | undefined {
  const inOrder = oldestFirst(subnets)
  return inOrder.find((subnet) => networkOf(subnet, networks) === defaultNetwork) ?? inOrder[0]
}

export function NetworkPicker({ networks, subnets, value, onChange }: NetworkPickerProps) {
  const defaultChoice = defaultSubnet(subnets, networks)
  return (
    <SelectField
      label="Network"
      value={value || (defaultChoice?.id ?? '')}
      onChange={(id) => onChange(id === defaultChoice?.id ? '' : id)}
      choices={[
        ...(defaultChoice ? [] : [{ value: '', label: 'No subnet in this location' }]),
        ...oldestFirst(subnets).map((subnet) => ({
          value: subnet.id,
          label: `${networkOf(subnet, networks)} / ${subnet.name} (${subnet.cidr})`,
        })),
      ]}
      hint="VMs in the same network reach each other at their private addresses. You cannot change a VM’s network later."
    />
  )
}
