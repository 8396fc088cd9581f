import { LabelsField } from '../../features/annotations.tsx'
import { parseLabels } from '../../lib/labels.ts'
import { CheckField } from '../../ui/field.tsx'
import type { Draft } from './draft.ts'
import { partId } from './problem.tsx'
import { ScriptFields } from './script-fields.tsx'
import { TtlFields } from './ttl-fields.tsx'

interface OptionsProps {
  draft: Draft
  onChange: (changes: Partial<Draft>) => void
}

/** The fields that are usually left empty. */
export function Options({ draft, onChange }: OptionsProps) {
  return (
    <>
      <ScriptFields draft={draft} onChange={onChange} />
      <TtlFields draft={draft} onChange={onChange} />
      <div id={partId('labels')}>
        <LabelsField
          value={draft.labels}
          onChange={(labels) => onChange({ labels })}
          problem={parseLabels(draft.labels).problem}
        />
      </div>
      <CheckField
        label="Deletion protection"
        hint="Prevents deletion while it is on."
        isChecked={draft.isProtected}
        onChange={(isProtected) => onChange({ isProtected })}
      />
    </>
  )
}
