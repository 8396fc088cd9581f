import { labelText } from '../lib/labels.ts'

const chip = 'mono rounded-[4px] border border-line bg-sunken px-1.5 text-xs leading-5 whitespace-nowrap'

/** Shows labels as chips. With `onPick`, they are buttons that filter the list. */
export function Labels({
  labels,
  onPick,
}: {
  labels: Record<string, string>
  onPick?: ((label: string) => void) | undefined
}) {
  return (
    <span
      // Table rows stay one line high.
      className={`inline-flex max-w-full gap-1 align-middle ${onPick ? 'overflow-hidden' : 'flex-wrap'}`}
    >
      {Object.entries(labels).map(([key, value]) => {
        const text = labelText(key, value)
        return onPick ? (
          <button
            key={key}
            type="button"
            title={`Show only ${text}`}
            className={`${chip} min-w-10 truncate hover:border-line-strong`}
            onClick={() => onPick(text)}
          >
            {text}
          </button>
        ) : (
          <span key={key} className={chip}>
            {text}
          </span>
        )
      })}
    </span>
  )
}
