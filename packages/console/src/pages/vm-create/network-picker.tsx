import type { Network, Subnet } from '@slipway/sdk'
import { SelectField } from '../../ui/field.tsx'

/** The network that every project begins with. */
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

/** Returns the subnet that the service uses by default: that of the project's first network, or the oldest one. */
export function usualSubnet(subnets: Subnet[], networks: Network[]): Subnet | undefined {
  const inOrder = oldestFirst(subnets)
  return inOrder.find((subnet) => networkOf(subnet, networks) === defaultNetwork) ?? inOrder[0]
}

/** Chooses the subnet of the VM. */
export function NetworkPicker({ networks, subnets, value, onChange }: NetworkPickerProps) {
  const usual = usualSubnet(subnets, networks)
  return (
    <SelectField
      label="Network"
      value={value || (usual?.id ?? '')}
      onChange={(id) => onChange(id === usual?.id ? '' : id)}
      choices={[
        ...(usual ? [] : [{ value: '', label: 'No subnet in this location' }]),
        ...oldestFirst(subnets).map((subnet) => ({
          value: subnet.id,
          label: `${networkOf(subnet, networks)} / ${subnet.name} (${subnet.cidr})`,
        })),
      ]}
      hint="VMs in one network reach each other by their private addresses. The network of a VM cannot be changed later."
    />
  )
}
