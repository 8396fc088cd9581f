import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { buildSync } from 'esbuild'
import { expect, test } from 'vitest'

/** Pages that wait for slow clients: each lives for a while, and is then forgotten. Prints the most that the heap held. */
const program = `
  import { collectSoon } from './heap.ts'
  collectSoon()
  const page = Buffer.alloc(256 * 1024, 'x')
  const underWay = []
  let most = 0
  for (let made = 0; made < 2000; made++) {
    underWay.push(page.toString('latin1'))
    if (underWay.length > 64) underWay.shift()
    if (made % 16 === 0) most = Math.max(most, process.memoryUsage().heapTotal)
  }
  console.log(most / 1024 / 1024)
`

test('what outlived its use is collected before it is many times what lives', () => {
  const { outputFiles } = buildSync({
    stdin: { contents: program, resolveDir: join(import.meta.dirname, '../src') },
    bundle: true,
    platform: 'node',
    write: false,
  })
  // A process of its own: how much garbage is too much depends on what else lives.
  const mostMib = Number(execFileSync(process.execPath, ['-e', outputFiles[0]!.text]))
  // The pages under way are 16 MiB of it.
  expect(mostMib).toBeGreaterThan(16)
  expect(mostMib).toBeLessThan(160)
})
