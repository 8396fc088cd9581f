import type { FirewallRule } from '@slipway/sdk'
import { SelectField } from '../../../ui/field.tsx'

type Direction = FirewallRule['direction']

export function DirectionField(props: { value: Direction; onChange: (value: Direction) => void }) {
  return (
    <SelectField
      label="Direction"
      value={props.value}
      onChange={(value) => props.onChange(value as Direction)}
      choices={[
        { value: 'ingress', label: 'Inbound' },
        { value: 'egress', label: 'Outbound' },
      ]}
    />
  )
}
