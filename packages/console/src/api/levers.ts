import { createLevers } from '@slipway/sdk/levers'
import { queryOptions } from '@tanstack/react-query'
import { useAction } from './actions.ts'
import { queryClient, refetchRoutes } from './client.ts'
import { fetchUnlessOffline } from './connection.ts'
import { session } from './session.ts'

/** The levers of a local service that was started with `--dev`. Only operators may use them. */
export const levers = createLevers({
  baseUrl: location.origin,
  token: session.token,
  fetch: fetchUnlessOffline,
})
type Clock = Awaited<ReturnType<typeof levers.clock.get>>

/** The console gets no notification when another client uses a lever, so it polls. */
const refetchInterval = 5_000

export const clockQuery = queryOptions({
  queryKey: ['devClock'],
  queryFn: () => levers.clock.get(),
  refetchInterval,
})

export const faultsQuery = queryOptions({
  queryKey: ['devFaults'],
  queryFn: () => levers.faults.list(),
  refetchInterval,
})

/** Uses a lever that changes the clock. Afterwards, all data may be stale. */
export const useClockLever = () =>
  useAction<() => Promise<Clock>>({
    run: async (move) => {
      queryClient.setQueryData(clockQuery.queryKey, await move())
      void refetchRoutes(() => true)
    },
    done: () => '',
  })
