/** Runs one statement on the database of the service. */
type Run = (text: string, values: unknown[]) => Promise<unknown>

/**
 * Changes the machine's clock, as the service sees it. These functions change only the time; they do not wait
 * for work that becomes due. Use them for features that follow the machine's clock (sign-in, sessions,
 * one-time codes, leases, clock steps), for crashes in the middle of work, and for tests that run a task
 * themselves or have no server. All other tests start a service `withLevers` and use `service.levers.clock`,
 * which returns when all due work is done.
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
    /** Freezes the clock at the given time or at the current time. After that, only the test moves it. */
    freeze: (at?: string) => set('frozen_at = coalesce($1, slipway_now())', [at ?? null]),
    /** Lets the clock run again from its current time. */
    thaw: () => set('frozen_at = NULL'),
    /**
     * Sets the machine's clock to a time, from which it continues, and freezes the dev clock at that time.
     */
    beginAt: (at: string) =>
      set('shift = $1::timestamptz - statement_timestamp(), paused_at = $1::timestamptz', [at]),
    reset: () => set(`shift = '0', frozen_at = NULL`),
    /** Simulates a backward step of PostgreSQL's clock: the service's time is then ahead of that clock. */
    setAhead: (interval: string) => set('ahead = $1', [interval]),
    addAhead: (interval: string) => set('ahead = ahead + $1::interval', [interval]),
    /** Moves the time of the last clock step into the past. */
    ageStep: (interval: string) => set('stepped_at = stepped_at - $1::interval', [interval]),
    /** Removes the record of clock steps, and sets how far the service's time is ahead. */
    forgetSteps: (ahead = '0') =>
      set('ahead = $1, latest = clock_timestamp(), stepped_at = NULL, step = NULL', [ahead]),
  }
}

export type MachineClock = ReturnType<typeof clockOf>
