import { maxGroupMembers } from '@slipway/sdk'
import { nameProblem } from '../../lib/names.ts'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { countOf, countProblem, type Draft } from './draft.ts'
import { partId } from './problem.tsx'

interface CountFieldsProps {
  draft: Draft
  onChange: (changes: Partial<Draft>) => void
}

/** The name and the number of VMs. More than one VM forms a group, which has two more options. */
export function CountFields({ draft, onChange }: CountFieldsProps) {
  const problem = countProblem(draft)
  const count = problem ? 1 : countOf(draft)
  return (
    <>
      <div className="grid grid-cols-[minmax(0,1fr)_120px] gap-4">
        <div id={partId('name')}>
          <TextField
            label="Name"
            value={draft.name}
            onChange={(name) => onChange({ name })}
            problem={nameProblem(draft.name)}
            hint={count > 1 ? `The VMs are named ${draft.name}-1 to ${draft.name}-${count}.` : ''}
            autoComplete="off"
          />
        </div>
        <div id={partId('count')}>
          <TextField
            label="Number of VMs"
            type="number"
            min={1}
            max={maxGroupMembers}
            value={draft.count}
            onChange={(value) => onChange({ count: value })}
            problem={problem && `1 to ${maxGroupMembers}`}
          />
        </div>
      </div>
      {count > 1 && (
        <>
          <SelectField
            label="Placement"
            value={draft.placement}
            onChange={(placement) => onChange({ placement: placement as Draft['placement'] })}
            choices={[
              { value: 'unspecified', label: 'No preference' },
              { value: 'spread', label: 'Spread: each VM on its own host' },
              { value: 'pack', label: 'Pack: on as few hosts as possible' },
            ]}
            hint="The VMs form a group: either all are created or none, and each VM gets the names and addresses of the others."
          />
          <CheckField
            label="Replace lost VMs"
            hint="If a host fails, a new VM with the same name and rank is created. Local data on the lost VM is not kept."
            isChecked={draft.replacesLost}
            onChange={(replacesLost) => onChange({ replacesLost })}
          />
        </>
      )}
    </>
  )
}
