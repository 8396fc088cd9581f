/** The parts of the form that can have a problem. */
type Part = 'type' | 'name' | 'count' | 'key' | 'ttl' | 'labels'

/** A problem that must be fixed before the request can be sent, and its field in the form. */
export interface Problem {
  text: string
  part?: Part
}

export const partId = (part: Part): string => `vm-${part}`

/** Shows a problem with a link to its field. */
export function ProblemLink({ problem: { text, part } }: { problem: Problem }) {
  if (!part) return text
  const go = () => {
    const section = document.getElementById(partId(part))
    section?.scrollIntoView({ block: 'center' })
    const control =
      section?.querySelector<HTMLElement>(':checked') ?? section?.querySelector('input, select, textarea')
    if (control instanceof HTMLElement) control.focus({ preventScroll: true })
  }
  return (
    <button type="button" className="link text-left" onClick={go}>
      {text}
    </button>
  )
}
