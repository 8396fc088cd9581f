import { spawnSync } from 'node:child_process'
import { startRealServer } from '../../sdk/test/support/real-server.ts'
import { binary, freshHome } from '../test/support/cli.ts'

export interface Measurement {
  name: string
  /** Median of the runs. */
  ms: number
  limitMs: number
  /** Of the same machine in the same minute: `node -e 0`. */
  timesEmptyNode: number
  isWithinLimit: boolean
}

const runs = 15

/** How long a person waits for `slipway --version` and for `slipway vm list` against a local server. */
export async function measureStartup(): Promise<Measurement[]> {
  const server = await startRealServer()
  const { base, home, remove } = freshHome()
  const env = {
    ...base,
    SLIPWAY_API_URL: server.api_url,
    SLIPWAY_ACCESS_KEY: server.access_key,
    SLIPWAY_PROJECT: server.project_id,
  }
  const timed = (words: string[]): number => {
    const startedAt = performance.now()
    const { status, stderr } = spawnSync(process.execPath, words, { env, cwd: home, encoding: 'utf8' })
    if (status !== 0) throw new Error(`node ${words.join(' ')} ended with ${status}: ${stderr}`)
    return performance.now() - startedAt
  }
  try {
    // In turns, so that a busy moment of the machine falls on all of them alike.
    const times = { empty: [] as number[], version: [] as number[], list: [] as number[] }
    for (let run = 0; run < runs; run++) {
      times.empty.push(timed(['-e', '0']))
      times.version.push(timed([binary, '--version']))
      times.list.push(timed([binary, 'vm', 'list']))
    }
    const emptyMs = median(times.empty)
    const measurement = (name: string, ms: number, limitMs: number): Measurement => ({
      name,
      ms,
      limitMs,
      timesEmptyNode: ms / emptyMs,
      isWithinLimit: ms < limitMs,
    })
    return [
      measurement('slipway --version', median(times.version), 150),
      measurement('slipway vm list', median(times.list), 300),
    ]
  } finally {
    remove()
    await server.stop()
  }
}

const median = (numbers: number[]): number =>
  numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)]!

for (const { name, ms, limitMs, timesEmptyNode, isWithinLimit } of await measureStartup()) {
  const verdict = isWithinLimit ? 'ok' : 'OVER'
  console.log(
    `${verdict}  ${name}: ${ms.toFixed(0)} ms (limit ${limitMs} ms, ${timesEmptyNode.toFixed(1)} times an empty node)`,
  )
  if (!isWithinLimit) process.exitCode = 1
}
