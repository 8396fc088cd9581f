import type { ReactNode } from 'react'
import { useNow } from '../lib/clock.ts'
import { duration } from '../lib/format.ts'

type Tone = 'good' | 'busy' | 'idle' | 'warn' | 'bad'

/** Every state that any record can be in: its tone and its word. */
const states: Record<string, [Tone, string]> = {
  STATE_RUNNING: ['good', 'running'],
  STATE_CREATING: ['busy', 'creating'],
  STATE_STARTING: ['busy', 'starting'],
  STATE_STOPPING: ['busy', 'stopping'],
  STATE_RESETTING: ['busy', 'resetting'],
  STATE_DELETING: ['busy', 'deleting'],
  STATE_SHUTOFF: ['idle', 'shut off'],
  STATE_UNREACHABLE: ['warn', 'unreachable'],
  STATE_CRASHED: ['bad', 'crashed'],
  IN_PROGRESS: ['busy', 'in progress'],
  SUCCEEDED: ['good', 'succeeded'],
  FAILED: ['bad', 'failed'],
  creating: ['busy', 'creating'],
  updating: ['busy', 'updating'],
  resizing: ['busy', 'resizing'],
  deleting: ['busy', 'deleting'],
  running: ['busy', 'running'],
  draining: ['busy', 'draining'],
  pending: ['idle', 'pending'],
  drained: ['idle', 'drained'],
  undone: ['idle', 'undone'],
  available: ['good', 'available'],
  attached: ['good', 'attached'],
  active: ['good', 'active'],
  up: ['good', 'up'],
  free: ['good', 'free'],
  claimed: ['busy', 'claimed'],
  done: ['good', 'done'],
  delivered: ['good', 'delivered'],
  paid: ['good', 'paid'],
  open: ['busy', 'open'],
  issued: ['idle', 'issued'],
  invited: ['idle', 'invited'],
  inactive: ['idle', 'inactive'],
  paused: ['idle', 'paused'],
  closed: ['warn', 'closed'],
  suspended: ['warn', 'suspended'],
  quarantined: ['warn', 'quarantined'],
  failed: ['bad', 'failed'],
  down: ['bad', 'down'],
  gone: ['bad', 'gone'],
  stuck: ['bad', 'stuck'],
}

const text: Record<Tone, string> = {
  good: 'text-green-text',
  busy: 'text-blue-text',
  idle: 'text-ink-muted',
  warn: 'text-amber-text',
  bad: 'text-red-text',
}

function Mark({ tone, isMoving }: { tone: Tone; isMoving: boolean }): ReactNode {
  if (tone === 'warn')
    return (
      <svg viewBox="0 0 10 10" className="size-2.5 shrink-0 text-amber" aria-hidden="true">
        <path d="M5 .8 9.6 9H.4z" fill="currentColor" />
      </svg>
    )
  if (tone === 'bad') return <span aria-hidden="true" className="size-2 shrink-0 rounded-[1px] bg-red" />
  if (tone === 'idle')
    return <span aria-hidden="true" className="size-2 shrink-0 rounded-full border-[1.5px] border-grey" />
  const colour = tone === 'good' ? 'bg-green' : `bg-blue ${isMoving ? 'pulsing' : ''}`
  return <span aria-hidden="true" className={`size-2 shrink-0 rounded-full ${colour}`} />
}

/** A state as colour, shape and word; one that passes shows how long it has lasted. */
export function StateBadge({ state, since = '' }: { state: string; since?: string | undefined }) {
  const [tone, word] = states[state] ?? (['idle', state] as const)
  const isMoving = tone === 'busy' && state !== 'claimed' && state !== 'open'
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

export const stateWord = (state: string): string => states[state]?.[1] ?? state

function Since({ iso }: { iso: string }) {
  const now = useNow()
  return <span className="figures text-ink-muted"> {duration(now - Date.parse(iso))}</span>
}
