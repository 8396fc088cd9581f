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

/** Chooses the subnet of the VM. The default is the subnet of the project's first network, or the oldest one. */
export function NetworkPicker({ networks, subnets, value, onChange }: NetworkPickerProps) {
  const networkOf = (subnet: Subnet) => networks.find(({ id }) => id === subnet.vpc_network_id)?.name ?? ''
  const oldestFirst = subnets.toSorted((a, b) => a.id.localeCompare(b.id))
  const usual = oldestFirst.find((subnet) => networkOf(subnet) === defaultNetwork) ?? oldestFirst[0]
  return (
    <SelectField
      label="Network"
      value={value || (usual?.id ?? '')}
      onChange={(id) => onChange(id === usual?.id ? '' : id)}
      choices={[
        ...(usual ? [] : [{ value: '', label: 'No subnet in this location' }]),
        ...oldestFirst.map((subnet) => ({
          value: subnet.id,
          label: `${networkOf(subnet)} / ${subnet.name} (${subnet.cidr})`,
        })),
      ]}
      hint="VMs in one network reach each other by their private addresses. It cannot be changed later."
    />
  )
}
