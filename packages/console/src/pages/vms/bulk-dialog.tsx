import type { Vm } from '@slipway/sdk'
import { useEffect, useRef, useState } from 'react'
import { LabelsField } from '../../features/annotations.tsx'
import { ActionEffects } from '../../features/vm-actions.tsx'
import { reservedAddressOf } from '../../lib/addresses.ts'
import { dataDisksOf } from '../../lib/disks.ts'
import { errorText } from '../../lib/error-text.ts'
import { count, firstNames, plural } from '../../lib/format.ts'
import { parseLabels } from '../../lib/labels.ts'
import { showToast } from '../../lib/toasts.ts'
import { FormDialog, TypedName } from '../../ui/dialog.tsx'
import { CheckField, SelectField } from '../../ui/field.tsx'
import { NoBreak, Sentence } from '../../ui/no-break.tsx'
import { type BulkProgress, type Failure, failureText, reportBulk, resultText, runBulk } from './bulk-run.ts'
import { type BulkInput, type BulkName, bulkAction, bulkCommands } from './bulk-table.ts'

interface BulkDialogProps {
  what: BulkName
  vms: Vm[]
  projectId: string
  onClose: () => void
  /** Called with the VMs for which the action succeeded. */
  onDone: (vms: Vm[]) => void
}

/** Confirms an action on one or more VMs, then shows its progress and what failed. */
export function BulkDialog({ what, vms, onClose, onDone }: BulkDialogProps) {
  const action = bulkAction(what)
  // Stored when the dialog opens, because the list of VMs changes while the action runs.
  const [targets, setTargets] = useState(() => vms.filter(action.fits))
  const [skipped] = useState(() => vms.filter((vm) => !action.fits(vm)))
  const [input, setInput] = useState<BulkInput>(() => ({
    setLabels: '',
    removedLabels: [],
    isProtected: !vms.every((vm) => vm.deletion_protection),
  }))
  const [typed, setTyped] = useState('')
  const [progress, setProgress] = useState<BulkProgress | null>(null)
  const [isRunning, setRunning] = useState(false)
  const isOpen = useRef(true)
  useEffect(() => {
    isOpen.current = true
    return () => {
      isOpen.current = false
    }
  }, [])
  const run = async () => {
    setRunning(true)
    const end = await runBulk(what, targets, input, setProgress)
    setRunning(false)
    onDone(end.done)
    if (!isOpen.current) return reportBulk(what, end, input)
    if (end.failures.length > 0) return setTargets(end.failures.map(({ vm }) => vm))
    showToast({ title: resultText(what, end.done) })
    onClose()
  }
  const name = targets.length === 1 ? targets[0]!.name : plural(targets.length, 'VM')
  const typedName = what !== 'delete' ? '' : targets.length === 1 ? name : String(targets.length)
  // The title shows the number with separators.
  const isConfirmed = typed === typedName || (targets.length > 1 && typed === count(targets.length))
  const typingReason = typedName !== '' && !isConfirmed ? `Type ${typedName} to confirm` : undefined
  const hasFailed = !isRunning && (progress?.failures.length ?? 0) > 0
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title={titleOf(what, name)}
      action={isRunning ? 'Working…' : hasFailed ? `Try again with ${name}` : actionOf(what, name)}
      dismiss={progress ? 'Close' : 'Cancel'}
      isBusy={isRunning}
      error={null}
      kind={what === 'delete' || what === 'stop' ? 'danger' : 'primary'}
      reason={typingReason ?? inputProblem(what, input)}
      commands={progress || inputProblem(what, input) ? undefined : bulkCommands(what, targets, input)}
      onSubmit={() => void run()}
    >
      {progress ? (
        <Progress progress={progress} what={what} isRunning={isRunning} />
      ) : (
        <>
          <div className="text-ink-muted">
            <Effects what={what} targets={targets} skipped={skipped} />
            {targets.length > 1 && (
              <p className="mt-2 break-words first:mt-0">
                VMs: <Sentence text={firstNames(targets.map((vm) => vm.name))} />
              </p>
            )}
          </div>
          <InputFields what={what} vms={targets} input={input} onChange={setInput} />
          {typedName && <TypedName name={typedName} value={typed} onChange={setTyped} />}
        </>
      )}
    </FormDialog>
  )
}

const titleOf = (what: BulkName, name: string): string =>
  what === 'labels'
    ? `Change labels of ${name}`
    : what === 'protect'
      ? `Change protection of ${name}`
      : actionOf(what, name)

const actionOf = (what: BulkName, name: string): string =>
  what === 'labels' || what === 'protect' ? `Change ${name}` : `${bulkAction(what).verb} ${name}`

const skippedText: Record<BulkName, string> = {
  start: 'not stopped',
  stop: 'not running',
  labels: '',
  protect: '',
  delete: 'protected or already being deleted',
}

/** Shows what the action does, and which of the selected VMs it skips. */
function Effects({ what, targets, skipped }: { what: BulkName; targets: Vm[]; skipped: Vm[] }) {
  return (
    <>
      {what === 'start' && <ActionEffects action="START" vms={targets} />}
      {what === 'stop' && <ActionEffects action="STOP" vms={targets} />}
      {what === 'delete' && <DeleteEffects vms={targets} />}
      {skipped.length > 0 && (
        <p className="mt-2">
          {plural(skipped.length, 'selected VM')} {skipped.length === 1 ? 'is' : 'are'} {skippedText[what]}{' '}
          and will be skipped: <Sentence text={firstNames(skipped.map((vm) => vm.name))} />.
        </p>
      )}
    </>
  )
}

function DeleteEffects({ vms }: { vms: Vm[] }) {
  const dataDisks = dataDisksOf(vms)
  const reserved = vms.filter((vm) => reservedAddressOf(vm) !== '')
  const kept = [
    ...(dataDisks.length > 0 ? [plural(dataDisks.length, 'data disk')] : []),
    ...(reserved.length > 0 ? [plural(reserved.length, 'reserved address', 'reserved addresses')] : []),
  ]
  const hasScratch = vms.some(({ scratch_gb }) => scratch_gb > 0)
  return (
    <>
      <p>
        <b className="font-medium text-ink">Will be deleted:</b> OS disks
        {hasScratch && ', local scratch data'} and unreserved addresses.
      </p>
      <p className="mt-1">
        <b className="font-medium text-ink">Will be kept:</b>{' '}
        {kept.length > 0 ? `${kept.join(' and ')}.` : 'nothing.'}
      </p>
    </>
  )
}

/** Returns how many of several VMs are protected now, as a sentence after another one. */
function protectedText(vms: Vm[]): string {
  const isOn = vms.filter((vm) => vm.deletion_protection).length
  return vms.length === 1 ? '' : ` It is now on for ${isOn} of ${plural(vms.length, 'VM')}.`
}

interface InputFieldsProps {
  what: BulkName
  vms: Vm[]
  input: BulkInput
  onChange: (input: BulkInput) => void
}

function InputFields({ what, vms, input, onChange }: InputFieldsProps) {
  if (what === 'protect')
    return (
      <SelectField
        label="Deletion protection"
        value={input.isProtected ? 'on' : 'off'}
        onChange={(value) => onChange({ ...input, isProtected: value === 'on' })}
        choices={[
          { value: 'on', label: 'On' },
          { value: 'off', label: 'Off' },
        ]}
        hint={`A VM cannot be deleted while its protection is on.${protectedText(vms)}`}
      />
    )
  if (what !== 'labels') return null
  const present = [...new Set(vms.flatMap((vm) => Object.keys(vm.labels)))].sort()
  const { setLabels, removedLabels } = input
  return (
    <>
      <LabelsField
        label="Add or change"
        value={setLabels}
        onChange={(value) => onChange({ ...input, setLabels: value })}
        problem={parseLabels(setLabels).problem}
      />
      {present.length > 0 && (
        <fieldset>
          <legend className="mb-1 text-sm font-medium">Remove</legend>
          <div className="flex flex-wrap gap-x-6 gap-y-1">
            {present.map((key) => (
              <CheckField
                key={key}
                label={key}
                isChecked={removedLabels.includes(key)}
                onChange={(isChecked) =>
                  onChange({
                    ...input,
                    removedLabels: isChecked
                      ? [...removedLabels, key]
                      : removedLabels.filter((each) => each !== key),
                  })
                }
              />
            ))}
          </div>
        </fieldset>
      )}
    </>
  )
}

function inputProblem(what: BulkName, { setLabels, removedLabels }: BulkInput): string | undefined {
  if (what !== 'labels') return undefined
  const { labels, problem } = parseLabels(setLabels)
  const isEmpty = Object.keys(labels).length === 0 && removedLabels.length === 0
  return problem || (isEmpty ? 'No changes yet' : undefined)
}

interface ProgressProps {
  progress: BulkProgress
  what: BulkName
  isRunning: boolean
}

function Progress({ progress: { total, done, failures }, what, isRunning }: ProgressProps) {
  return (
    <div role="status" className="flex flex-col gap-3">
      <div>
        <p className="figures font-medium">
          {bulkAction(what).past} {done.length} of {plural(total, 'VM')}
        </p>
        <div
          role="progressbar"
          aria-label="VMs done"
          aria-valuemin={0}
          aria-valuemax={total}
          aria-valuenow={done.length}
          className="mt-2 h-1.5 overflow-hidden rounded-full bg-sunken"
        >
          <div
            className="h-full rounded-full bg-accent"
            style={{ width: `${(done.length / total) * 100}%` }}
          />
        </div>
        {isRunning && (
          <p className="mt-2 text-sm text-ink-muted">
            You can close this dialog. The action continues in the background.
          </p>
        )}
      </div>
      {failures.length > 0 && <Failures failures={failures} what={what} />}
    </div>
  )
}

const Failures = ({ failures, what }: { failures: Failure[]; what: BulkName }) => (
  <div className="rounded-md border border-red/40 bg-red-soft p-3 text-sm">
    <p className="font-medium text-red-text">{failureText(what, plural(failures.length, 'VM'))}</p>
    <ul className="mt-1 max-h-40 overflow-y-auto">
      {failures.map(({ vm, error }) => (
        <li key={vm.id} className="break-words">
          <NoBreak>
            <span className="mono">{vm.name}</span>:
          </NoBreak>{' '}
          {errorText(error, 'change').message}
        </li>
      ))}
    </ul>
  </div>
)
