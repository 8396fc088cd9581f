import type { Disk, InstanceTemplate, VmCreate } from '@slipway/sdk'
import { useProjectId } from '../../api/me.ts'
import { CheckField, SelectField } from '../../ui/field.tsx'
import type { queueCommand } from './commands.ts'
import { CountFields } from './count-fields.tsx'
import type { FormData, resolveDraft } from './data.ts'
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
import { type useWaiting, WaitForCapacity } from './wait-for-capacity.tsx'

interface FormFieldsProps {
  data: FormData
  draft: Draft
  resolved: ReturnType<typeof resolveDraft>
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
  /** The names that the shown commands need. */
  names: Parameters<typeof queueCommand>[2]
  waiting: ReturnType<typeof useWaiting>
  /** True if the form waits for capacity instead of creating VMs. */
  isWaiting: boolean
  /** Why the request cannot wait for capacity yet. */
  whyNotWait: string | undefined
}

/** The fields of the form, in reading order: what, where, and then the details. */
export function FormFields(props: FormFieldsProps) {
  const { data, draft, resolved, count, template, templates, onChange, onChoose } = props
  const { type, location } = resolved
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
        locations={resolved.offered}
        stockOf={resolved.stockOf}
        typeName={type.name}
        count={count}
      />
      {props.isWaiting && <Wait {...props} />}
      <Fieldset title="System">
        <SelectField
          label="Image"
          value={resolved.customImage?.id ?? resolved.image}
          onChange={(value) =>
            onChange(
              resolved.customImages.some(({ id }) => id === value)
                ? { customImage: value }
                : { customImage: '', image: value },
            )
          }
          choices={[
            ...resolved.images.map(({ name }) => ({ value: name, label: name })),
            ...resolved.customImages.map(({ id, name }) => ({ value: id, label: `${name} (your image)` })),
          ]}
          hint={
            resolved.customImage?.description ??
            resolved.images.find(({ name }) => name === resolved.image)?.description
          }
        />
        {!props.isTemplate && <CountFields draft={draft} onChange={onChange} />}
        <div id={partId('key')} className="flex flex-col gap-4">
          <KeyPicker
            registered={data.keys}
            chosen={resolved.keyIds}
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
          subnets={resolved.subnets}
          value={resolved.subnetId}
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

function Disks({ data, disks, resolved, count, onChange }: FormFieldsProps) {
  const projectId = useProjectId()
  return (
    <Fieldset title="Disks">
      <DiskPicker
        disks={disks}
        prices={data.prices}
        location={resolved.location}
        type={resolved.type}
        isForGroup={count > 1}
        chosen={resolved.disks}
        onChange={(chosen) => onChange({ disks: chosen })}
        projectId={projectId}
      />
    </Fieldset>
  )
}

function Wait({ resolved, count, request, group, names, waiting, whyNotWait }: FormFieldsProps) {
  // Disks and subnets belong to one location.
  const canMove = resolved.disks.length === 0 && resolved.subnetId === ''
  return (
    <WaitForCapacity
      request={request}
      group={group}
      names={names}
      waiting={waiting}
      title={stockProblem(resolved.type.name, resolved.location, resolved.stock ?? 0, count)}
      otherLocations={
        canMove ? resolved.offered.map(({ name }) => name).filter((name) => name !== resolved.location) : []
      }
      reason={whyNotWait}
    />
  )
}
