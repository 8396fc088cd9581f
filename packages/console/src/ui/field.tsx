import { type InputHTMLAttributes, type ReactNode, useId } from 'react'
import { useUrlInputProps } from '../lib/use-search-state.ts'
import { Icon } from './icon.tsx'

const box =
  'w-full rounded-md border bg-surface px-2.5 text-base text-ink outline-offset-0 disabled:bg-sunken disabled:text-ink-muted'
const boxState = (problem: string | undefined) => (problem ? 'border-red' : 'border-line-strong')

interface FrameProps {
  label: ReactNode
  hint?: ReactNode
  problem?: string | undefined
}

function Frame({ id, label, hint, problem, children }: FrameProps & { id: string; children: ReactNode }) {
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children}
      {(problem || hint) && (
        <p id={`${id}-note`} className={`text-sm ${problem ? 'text-red-text' : 'text-ink-muted'}`}>
          {problem || hint}
        </p>
      )}
    </div>
  )
}

type TextFieldProps = FrameProps &
  Omit<InputHTMLAttributes<HTMLInputElement>, 'onChange' | 'value'> & {
    value: string
    onChange: (value: string) => void
    isMono?: boolean
  }

export function TextField({
  label,
  hint,
  problem,
  value,
  onChange,
  isMono = false,
  className = '',
  ...rest
}: TextFieldProps) {
  const id = useId()
  return (
    <Frame id={id} label={label} hint={hint} problem={problem}>
      <input
        id={id}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        aria-invalid={problem ? true : undefined}
        aria-describedby={problem || hint ? `${id}-note` : undefined}
        className={`h-8 ${box} ${boxState(problem)} ${isMono ? 'font-mono text-sm' : ''} ${className}`}
        {...rest}
      />
    </Frame>
  )
}

type TextAreaProps = FrameProps & {
  value: string
  onChange: (value: string) => void
  rows?: number
  placeholder?: string
}

export function TextArea({ label, hint, problem, value, onChange, rows = 3, placeholder }: TextAreaProps) {
  const id = useId()
  return (
    <Frame id={id} label={label} hint={hint} problem={problem}>
      <textarea
        id={id}
        rows={rows}
        spellCheck={false}
        placeholder={placeholder}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        aria-invalid={problem ? true : undefined}
        aria-describedby={problem || hint ? `${id}-note` : undefined}
        className={`resize-y py-1.5 font-mono text-sm break-all ${box} ${boxState(problem)}`}
      />
    </Frame>
  )
}

interface Choice {
  value: string
  label: string
  isOff?: boolean
  /** Consecutive choices of the same group are shown below its name. */
  group?: string
}

type SelectFieldProps = FrameProps & {
  value: string
  onChange: (value: string) => void
  choices: Choice[]
  disabled?: boolean
}

export function SelectField({ label, hint, problem, ...select }: SelectFieldProps) {
  const id = useId()
  return (
    <Frame id={id} label={label} hint={hint} problem={problem}>
      <Select id={id} {...select} />
    </Frame>
  )
}

export function Select({
  id,
  label,
  value,
  onChange,
  choices,
  disabled = false,
  isSmall = false,
}: {
  id?: string
  label?: string
  value: string
  onChange: (value: string) => void
  choices: Choice[]
  disabled?: boolean
  isSmall?: boolean
}) {
  return (
    <span className={`relative ${isSmall ? 'inline-block max-w-64' : 'block'}`}>
      <select
        id={id}
        aria-label={label}
        value={value}
        disabled={disabled}
        onChange={(event) => onChange(event.target.value)}
        className={`w-full appearance-none truncate rounded-md border border-line-strong bg-surface pr-7 pl-2.5 text-ink disabled:bg-sunken disabled:text-ink-muted ${isSmall ? 'h-7 text-sm' : 'h-8'}`}
      >
        {optionsOf(choices)}
      </select>
      <Icon
        name="chevron-down"
        size={14}
        aria-hidden="true"
        className="pointer-events-none absolute top-1/2 right-2 -translate-y-1/2 text-ink-muted"
      />
    </span>
  )
}

function optionsOf(choices: Choice[]): ReactNode {
  const option = ({ value, label, isOff }: Choice) => (
    <option key={value} value={value} disabled={isOff}>
      {label}
    </option>
  )
  const groups = [...new Set(choices.flatMap(({ group }) => group ?? []))]
  return (
    <>
      {choices.filter(({ group }) => !group).map(option)}
      {groups.map((name) => (
        <optgroup key={name} label={name}>
          {choices.filter(({ group }) => group === name).map(option)}
        </optgroup>
      ))}
    </>
  )
}

/** A text field that filters a list. */
export function FilterInput({
  label,
  value,
  onChange,
}: {
  label: string
  value: string
  onChange: (value: string) => void
}) {
  return (
    <input
      aria-label={label}
      placeholder={label}
      {...useUrlInputProps(value, onChange)}
      className="h-7 w-56 rounded-md border border-line-strong bg-surface px-2 text-sm"
    />
  )
}

export function CheckField({
  label,
  hint,
  isChecked,
  isMixed = false,
  onChange,
}: {
  label: ReactNode
  hint?: ReactNode
  isChecked: boolean
  /** True if some of the options below it are selected and some are not. */
  isMixed?: boolean
  onChange: (isChecked: boolean) => void
}) {
  const id = useId()
  return (
    <div className="flex items-start gap-2">
      <input
        id={id}
        type="checkbox"
        ref={(box) => {
          if (box) box.indeterminate = isMixed
        }}
        checked={isChecked}
        onChange={(event) => onChange(event.target.checked)}
        className="mt-0.5"
      />
      <label htmlFor={id} className="text-base">
        {label}
        {hint && <span className="block text-sm text-ink-muted">{hint}</span>}
      </label>
    </div>
  )
}
