import { isSelected, parseLabelSelector } from '@slipway/contract/labels'

/** While the text is no selector yet, nothing is hidden. */
export function fitsSelector({ labels }: { labels: Record<string, string> }, text: string): boolean {
  const selector = parseLabelSelector(text)
  return !selector || isSelected(labels, selector)
}

/** Takes what the API and the CLI take as a selector. */
export function LabelFilter({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const isWrong = value !== '' && parseLabelSelector(value) === null
  return (
    <input
      aria-label="Filter by labels"
      aria-invalid={isWrong || undefined}
      title="Conditions that all have to hold: team=ml, stage!=test, gpu-job, !old"
      placeholder="Labels: team=ml"
      value={value}
      onChange={(event) => onChange(event.target.value)}
      className={`h-7 w-40 rounded-md border bg-surface px-2 text-sm ${isWrong ? 'border-red' : 'border-line-strong'}`}
    />
  )
}
