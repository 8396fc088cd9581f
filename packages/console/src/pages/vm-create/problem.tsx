/** The parts of the form that something can be wrong with. */
type Part = 'type' | 'name' | 'key' | 'labels'

/** What must be mended before the request can be sent, and where, if that is in the form. */
export interface Problem {
  words: string
  part?: Part
}

export const partId = (part: Part): string => `vm-${part}`

/** Says what must be mended, and leads there. */
export function ProblemLink({ problem: { words, part } }: { problem: Problem }) {
  if (!part) return words
  const go = () => {
    const place = document.getElementById(partId(part))
    place?.scrollIntoView({ block: 'center' })
    const control = place?.querySelector<HTMLElement>(':checked') ?? place?.querySelector('input, textarea')
    if (control instanceof HTMLElement) control.focus({ preventScroll: true })
  }
  return (
    <button type="button" className="link text-left" onClick={go}>
      {words}
    </button>
  )
}
