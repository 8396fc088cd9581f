// Kept for the suites of the CLI until they import it from there.
import { startRealServer as start, twoLocations } from '@slipway/testing/real-server.ts'

export type RealServer = Awaited<ReturnType<typeof startRealServer>>

export async function startRealServer({ bootMs = 0 } = {}) {
  const server = await start({ config: twoLocations(bootMs) })
  return { ...server, stop: server.close }
}
