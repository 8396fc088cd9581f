import { useEffect, useState } from 'react'
import { clockQuery, faultsQuery, levers, useClockLever } from '../api/levers.ts'
import { useMe } from '../api/me.ts'
import { useQuery } from '../api/use-query.ts'
import { followServiceClock, useNow } from '../lib/clock.ts'
import { plural } from '../lib/format.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Timestamp } from '../ui/time.tsx'

/** Shows the clock of a local service, and lets operators change it. */
export default function DevBar() {
  const { caller } = useMe()
  return (
    <section
      aria-label="Dev mode"
      className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line bg-amber-soft px-4 py-1 text-sm"
    >
      <span className="font-medium text-amber-text">Local service in dev mode</span>
      {caller.is_operator && <Controls />}
    </section>
  )
}

function Controls() {
  const faults = useQuery(faultsQuery)
  const clock = useQuery(clockQuery)
  const lever = useClockLever()
  const [isResetting, setResetting] = useState(false)
  const { data, dataUpdatedAt: readAt } = clock
  useEffect(() => {
    if (data) followServiceClock({ ...data, readAt })
  }, [data, readAt])
  if (!data) return null
  const { now, mode } = data
  const advance = (seconds: number) => () => lever.mutate(() => levers.clock.advance({ seconds }))
  const button = { size: 'small', isBusy: lever.isPending } as const
  return (
    <>
      <ClockTime clock={data} />
      <div className="flex flex-wrap items-center gap-1">
        <Button {...button} onClick={advance(3_600)}>
          +1 h
        </Button>
        <Button {...button} onClick={advance(86_400)}>
          +1 day
        </Button>
        <Button
          {...button}
          title="Advance to 01:00 UTC on the first of next month, when invoices have been issued"
          onClick={() => lever.mutate(() => levers.clock.advance({ to: nextMonth(now) }))}
        >
          End of month
        </Button>
        <Button
          {...button}
          onClick={() =>
            lever.mutate(() => levers.clock.set({ mode: mode === 'frozen' ? 'real' : 'frozen' }))
          }
        >
          {mode === 'frozen' ? 'Run' : 'Freeze'}
        </Button>
      </div>
      <div className="flex flex-1 items-center justify-between gap-3 whitespace-nowrap">
        <span className="text-ink-muted">
          {faults.data?.length ? plural(faults.data.length, 'active fault') : 'No faults'}
        </span>
        <Button size="small" kind="quiet" className="-mr-2" onClick={() => setResetting(true)}>
          Reset
        </Button>
      </div>
      <ResetDialog isOpen={isResetting} onClose={() => setResetting(false)} />
    </>
  )
}

type Clock = Awaited<ReturnType<typeof levers.clock.get>>

function ClockTime({ clock: { mode, rate } }: { clock: Clock }) {
  const words = { real: 'Clock runs', frozen: 'Clock frozen', scaled: `Clock runs at ${rate}×` }
  return (
    <span className="flex gap-2">
      {words[mode]}
      <Timestamp iso={new Date(useNow()).toISOString()} hasSeconds />
    </span>
  )
}

function ResetDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const reset = useClockLever()
  return (
    <Confirm
      isOpen={isOpen}
      onClose={onClose}
      title="Reset the service"
      action="Reset service"
      isBusy={reset.isPending}
      error={reset.error}
      onSubmit={() => reset.mutate(levers.reset, { onSuccess: onClose })}
    >
      Everything except the demo and its credentials will be deleted, including all other organizations and
      users. All faults will end, and the clock will show the real time again.
    </Confirm>
  )
}

/** Returns 01:00 UTC on the first of the next month. By then, the first roll-up of the month is done. */
function nextMonth(now: string): string {
  const date = new Date(now)
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1, 1)).toISOString()
}
