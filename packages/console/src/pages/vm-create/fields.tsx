import type { Disk, InstanceTemplate, VmCreate } from '@slipway/sdk'
import { useProjectId } from '../../api/me.ts'
import { CheckField, SelectField } from '../../ui/field.tsx'
import { CountFields } from './count-fields.tsx'
import type { FormData, settle } from './data.ts'
import { DiskPicker } from './disk-picker.tsx'
import type { Draft, GroupCreate } from './draft.ts'
import { Fieldset } from './fieldset.tsx'
import { KeyPicker } from './key-picker.tsx'
import { stockProblem } from './limits.ts'
import { LocationPicker } from './location-picker.tsx'
import { NetworkPicker } from './network-picker.tsx'
import { Options } from './options.tsx'
import { partId } from './problem.tsx'
import { TemplatePicker } from './template-picker.tsx'
import { TypePicker } from './type-picker.tsx'
import { WaitForCapacity } from './wait-for-capacity.tsx'

interface FormFieldsProps {
  data: FormData
  draft: Draft
  settled: ReturnType<typeof settle>
  count: number
  request: VmCreate
  /** The request for several VMs; null for one. */
  group: GroupCreate | null
  template: InstanceTemplate | undefined
  templates: InstanceTemplate[]
  disks: Disk[]
  isTemplate: boolean
  onChange: (changes: Partial<Draft>) => void
  /** Changes the type, location or template, which are in the URL. */
  onChoose: (changes: Record<string, string>) => void
  /** Why the request cannot wait for capacity yet. */
  whyNotWait: string | undefined
}

/** The fields of the form, in reading order: what, where, and then the details. */
export function FormFields(props: FormFieldsProps) {
  const { data, draft, settled, count, template, templates, onChange, onChoose } = props
  const { type, location } = settled
  return (
    <div className="flex min-w-0 flex-col gap-8">
      {templates.length > 0 && (
        <TemplatePicker
          templates={templates}
          value={template}
          // Clear the chosen type and location, so that the template's values apply.
          onChange={(id) => onChoose({ template: id, type: '', location: '' })}
        />
      )}
      <TypePicker
        value={type.name}
        onChange={(name) => onChoose({ type: name })}
        prices={data.prices}
        capacities={data.capacities}
      />
      <LocationPicker
        value={location}
        onChange={(name) => onChoose({ location: name })}
        locations={settled.offered}
        stockOf={settled.stockOf}
        typeName={type.name}
        count={count}
      />
      {settled.stock !== undefined && settled.stock < count && !props.isTemplate && <Wait {...props} />}
      <Fieldset title="System">
        <SelectField
          label="Image"
          value={settled.customImage?.id ?? settled.image}
          onChange={(value) =>
            onChange(
              settled.customImages.some(({ id }) => id === value)
                ? { customImage: value }
                : { customImage: '', image: value },
            )
          }
          choices={[
            ...settled.images.map(({ name }) => ({ value: name, label: name })),
            ...settled.customImages.map(({ id, name }) => ({ value: id, label: `${name} (your image)` })),
          ]}
          hint={
            settled.customImage?.description ??
            settled.images.find(({ name }) => name === settled.image)?.description
          }
        />
        {!props.isTemplate && <CountFields draft={draft} onChange={onChange} />}
        <div id={partId('key')} className="flex flex-col gap-4">
          <KeyPicker
            registered={data.keys}
            chosen={settled.keyIds}
            onChoose={(keyIds) => onChange({ keyIds })}
            pasted={draft.key}
            onPaste={(key) => onChange({ key })}
          />
        </div>
      </Fieldset>
      <Disks {...props} />
      <Fieldset title="Network">
        <NetworkPicker
          networks={data.networks}
          subnets={settled.subnets}
          value={settled.subnetId}
          onChange={(subnetId) => onChange({ subnetId })}
        />
        <CheckField
          label="Public address"
          hint="Without a public address, the VM is reachable only from its own network."
          isChecked={draft.hasPublicIp}
          onChange={(hasPublicIp) => onChange({ hasPublicIp })}
        />
      </Fieldset>
      <Fieldset title="Options">
        <Options draft={draft} onChange={onChange} />
      </Fieldset>
    </div>
  )
}

function Disks({ disks, settled, count, onChange }: FormFieldsProps) {
  const projectId = useProjectId()
  return (
    <Fieldset title="Disks">
      <DiskPicker
        disks={disks}
        location={settled.location}
        type={settled.type}
        isForGroup={count > 1}
        chosen={settled.disks}
        onChange={(chosen) => onChange({ disks: chosen })}
        projectId={projectId}
      />
    </Fieldset>
  )
}

function Wait({ settled, count, request, group, whyNotWait }: FormFieldsProps) {
  // Disks and subnets belong to one location.
  const canMove = settled.disks.length === 0 && settled.subnetId === ''
  return (
    <WaitForCapacity
      request={request}
      group={group}
      typeName={settled.type.name}
      title={stockProblem(settled.type.name, settled.location, settled.stock ?? 0, count)}
      otherLocations={
        canMove ? settled.offered.map(({ name }) => name).filter((name) => name !== settled.location) : []
      }
      reason={whyNotWait}
    />
  )
}
