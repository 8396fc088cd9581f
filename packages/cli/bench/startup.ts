import { spawnSync } from 'node:child_process'
import { startRealServer } from '@slipway/testing/real-server.ts'
import { type Figure, print } from '@slipway/testing/report.ts'
import { binary, freshHome } from '../test/support/cli.ts'

// Measures how long a user waits for `slipway --version`, and for `slipway vm list` against a local server.

const runs = 15

const server = await startRealServer()
const { base, home, remove } = freshHome()
const env = {
  ...base,
  SLIPWAY_API_URL: server.api_url,
  SLIPWAY_ACCESS_KEY: server.access_key,
  SLIPWAY_PROJECT: server.project_id,
}

function measureMs(words: string[]): number {
  const startedAt = performance.now()
  const { status, stderr } = spawnSync(process.execPath, words, { env, cwd: home, encoding: 'utf8' })
  if (status !== 0) throw new Error(`node ${words.join(' ')} ended with ${status}: ${stderr}`)
  return performance.now() - startedAt
}

const median = (numbers: number[]): number =>
  numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)]!

try {
  // Alternates between the commands, so that a short load on the machine affects all of them.
  const times = { empty: [] as number[], version: [] as number[], list: [] as number[] }
  for (let run = 0; run < runs; run++) {
    times.empty.push(measureMs(['-e', '0']))
    times.version.push(measureMs([binary, '--version']))
    times.list.push(measureMs([binary, 'vm', 'list']))
  }
  const emptyMs = median(times.empty)
  const figure = (what: string, ms: number, aimMs: number): Figure => {
    // The aims are for a machine on which an empty Node takes 100 ms. On a slower machine, they grow in proportion.
    const allowedMs = Math.max(aimMs, (aimMs / 100) * emptyMs)
    if (ms > allowedMs) process.exitCode = 1
    const aim = `aim under ${aimMs} ms${ms > allowedMs ? ': MISSED' : ''}`
    return { what, value: ms, unit: 'ms', baseline: emptyMs, baselineIs: 'an empty node', aim }
  }
  print([
    figure('slipway --version, median', median(times.version), 150),
    figure('slipway vm list against a local server, median', median(times.list), 300),
  ])
} finally {
  remove()
  await server.close()
}
