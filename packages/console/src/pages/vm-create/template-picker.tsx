import type { InstanceTemplate } from '@slipway/sdk'
import { SelectField } from '../../ui/field.tsx'
import { hiddenText } from './template.ts'

interface TemplatePickerProps {
  /** All versions. */
  templates: InstanceTemplate[]
  value: InstanceTemplate | undefined
  onChange: (id: string) => void
}

/** Selects the template that fills in the form. Offers an earlier version only if it is already selected. */
export function TemplatePicker({ templates, value, onChange }: TemplatePickerProps) {
  const isLatest = ({ name, version }: InstanceTemplate) =>
    !templates.some((other) => other.name === name && other.version > version)
  const offered = templates
    .filter((template) => isLatest(template) || template.id === value?.id)
    .toSorted((a, b) => a.name.localeCompare(b.name) || b.version - a.version)
  return (
    <SelectField
      label="Template"
      value={value?.id ?? ''}
      onChange={onChange}
      choices={[
        { value: '', label: 'None' },
        ...offered.map(({ id, name, version }) => ({ value: id, label: `${name}, version ${version}` })),
      ]}
      hint={value ? hiddenText(value) : 'Fills in the form. You can change any value.'}
    />
  )
}
