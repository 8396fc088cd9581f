import type { ReactNode } from 'react'
import { useNow } from '../lib/clock.ts'
import { duration } from '../lib/format.ts'
import { stateStyles, type Tone } from '../lib/states.ts'

const text: Record<Tone, string> = {
  good: 'text-green-text',
  busy: 'text-blue-text',
  idle: 'text-ink-muted',
  used: 'text-ink',
  warn: 'text-amber-text',
  bad: 'text-red-text',
}

export function Mark({ tone, isMoving = false }: { tone: Tone; isMoving?: boolean }): ReactNode {
  if (tone === 'warn')
    return (
      <svg viewBox="0 0 10 10" className="size-2.5 shrink-0 text-amber" aria-hidden="true">
        <path d="M5 .8 9.6 9H.4z" fill="currentColor" />
      </svg>
    )
  if (tone === 'bad') return <span aria-hidden="true" className="size-2 shrink-0 rounded-[1px] bg-red" />
  if (tone === 'used') return <span aria-hidden="true" className="size-2 shrink-0 rounded-[1px] bg-grey" />
  if (tone === 'idle')
    return <span aria-hidden="true" className="size-2 shrink-0 rounded-full border-[1.5px] border-grey" />
  const color = tone === 'good' ? 'bg-green' : `bg-blue ${isMoving ? 'pulsing' : ''}`
  return <span aria-hidden="true" className={`size-2 shrink-0 rounded-full ${color}`} />
}

/** Blue states that do not pulse, because nothing is in progress. */
const steady = ['held', 'open']

/** Shows a state by color, shape and word, and how long a transitional state has lasted. */
export function StateBadge({ state, since = '' }: { state: string; since?: string | undefined }) {
  const [tone, word] = stateStyles[state] ?? (['idle', state] as const)
  const isMoving = tone === 'busy' && !steady.includes(state)
  return (
    <span className={`inline-flex items-center gap-2 whitespace-nowrap ${text[tone]}`}>
      <Mark tone={tone} isMoving={isMoving} />
      <span>
        {word}
        {isMoving && since && <Since iso={since} />}
      </span>
    </span>
  )
}

function Since({ iso }: { iso: string }) {
  const now = useNow()
  return <span className="figures text-ink-muted"> {duration(now - Date.parse(iso))}</span>
}
