import { isSelected, parseLabelSelector } from '@slipway/contract/labels'
import { useUrlInputProps } from '../lib/use-search-state.ts'

/** Returns whether the labels match the selector. A text that is not a valid selector matches everything. */
export function fitsSelector({ labels }: { labels: Record<string, string> }, text: string): boolean {
  const selector = parseLabelSelector(text)
  return !selector || isSelected(labels, selector)
}

/** Accepts the same label selectors as the API and the CLI. */
export function LabelFilter({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const typed = useUrlInputProps(value, onChange)
  const isWrong = typed.value !== '' && parseLabelSelector(typed.value) === null
  return (
    <input
      aria-label="Filter by labels"
      aria-invalid={isWrong || undefined}
      title="Separate conditions with commas; all must match. Examples: team=ml, stage!=test, gpu-job (has the label), !old (does not have it)"
      placeholder="Labels: team=ml"
      {...typed}
      className={`h-7 w-40 rounded-md border bg-surface px-2 text-sm ${isWrong ? 'border-red' : 'border-line-strong'}`}
    />
  )
}
