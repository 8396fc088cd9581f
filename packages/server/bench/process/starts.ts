import { setTimeout as delay } from 'node:timers/promises'
import { childrenOf, programOf } from '../cpu.ts'
import { atMost, type Figure, median } from '../figures.ts'
import type { RunningService } from '../running-service.ts'

/**
 * Measures the time from the start of the server process, or of `npm start`, until the server is ready. This
 * includes the start of PostgreSQL, with the database that the earlier measurements left.
 */
export async function measureStarts(service: RunningService, rounds: number): Promise<Figure[]> {
  const start = async (command?: string[]) => {
    await service.main.stop()
    service.main = await service.startProcess('all', command)
    return service.main.readyMs
  }
  const direct: number[] = []
  for (let round = 0; round < rounds; round++) direct.push(await start())
  const npm = await start(['npm', 'start', '--'])
  // `service.main` is now the process of npm. Its child first builds and then becomes the server, so a build
  // process that has not ended would be a descendant of npm.
  await delay(1_000)
  const left = builders(service.main.pid)
  // Start without npm again, because later measurements would otherwise measure the process of npm.
  await start()
  const ms = median(direct)
  return [
    {
      id: 'ready',
      what: 'Ready on an existing database',
      value: ms,
      unit: 'ms',
      aim: atMost(ms, 1_500, 'ms'),
    },
    {
      id: 'npm-start',
      what: '`npm start` in a checkout that is already built',
      value: npm,
      unit: 'ms',
      aim: { text: 'no build process still running', isMet: left === 0 },
      limits: [{ what: 'the built program alone', value: ms, ratio: npm / ms }],
      more: { 'build processes still running': left },
    },
  ]
}

const builders = (pid: number): number =>
  childrenOf(pid).reduce(
    (sum, child) => sum + builders(child) + (/esbuild|vite/.test(programOf(child)) ? 1 : 0),
    0,
  )
