/** Runs one statement on the database of the service. */
type Run = (text: string, values: unknown[]) => Promise<unknown>

/**
 * The clock of the machine, as the service sees it. These functions only change the time: what becomes due has not happened
 * yet when they return. Use them for what follows the clock of the machine (sign-in, sessions, one-time codes, leases, steps
 * of the clock), for crashes in the middle of work, and for tests that run a task themselves, or that have no server. All
 * other tests start a service `withLevers` and use `service.levers.clock`, which returns when everything that became due is
 * done.
 */
export function clockOf(run: Run) {
  const set = async (assignments: string, values: unknown[] = []): Promise<void> => {
    await run(`UPDATE clock SET ${assignments}`, values)
  }
  return {
    advance: (interval: string) =>
      set('shift = shift + $1::interval, frozen_at = frozen_at + $1::interval', [interval]),
    /** Like `advance`, but does nothing while a worker has a lease. */
    advanceUnlessLeased: (interval: string) =>
      set(
        'shift = shift + $1::interval WHERE NOT EXISTS (SELECT FROM operation_queue WHERE lease_token IS NOT NULL)',
        [interval],
      ),
    /** Freezes the clock, at a time or where it is; then only the test moves it. */
    freeze: (at?: string) => set('frozen_at = coalesce($1, slipway_now())', [at ?? null]),
    /** Lets the clock run again, as far ahead as it was moved. */
    thaw: () => set('frozen_at = NULL'),
    /** Sets the clock of the machine to a time, from which it runs, and freezes the clock of the levers there. */
    beginAt: (at: string) =>
      set('shift = $1::timestamptz - statement_timestamp(), paused_at = $1::timestamptz', [at]),
    reset: () => set(`shift = '0', frozen_at = NULL`),
    /** For the service, this is a step of PostgreSQL's clock: its time is this far ahead of that clock. */
    setAhead: (interval: string) => set('ahead = $1', [interval]),
    addAhead: (interval: string) => set('ahead = ahead + $1::interval', [interval]),
    /** Makes the last step of PostgreSQL's clock older. */
    ageStep: (interval: string) => set('stepped_at = stepped_at - $1::interval', [interval]),
    /** The state as if PostgreSQL's clock had never made a step, with a time that is this far ahead of it. */
    forgetSteps: (ahead = '0') =>
      set('ahead = $1, latest = clock_timestamp(), stepped_at = NULL, step = NULL', [ahead]),
  }
}

export type MachineClock = ReturnType<typeof clockOf>
