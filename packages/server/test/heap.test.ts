import { expect, test } from 'vitest'
import { collectSoon } from '../src/heap.ts'

const mib = 1024 * 1024

test('what outlived its use is collected before it is many times what lives', () => {
  collectSoon()
  const before = process.memoryUsage().heapTotal
  const page = Buffer.alloc(mib / 4, 'x')
  // Pages that wait for slow clients: each lives for a while, and is then forgotten.
  const underWay: string[] = []
  let most = 0
  for (let made = 0; made < 2_000; made++) {
    underWay.push(page.toString('latin1'))
    if (underWay.length > 64) underWay.shift()
    if (made % 16 === 0) most = Math.max(most, process.memoryUsage().heapTotal)
  }
  expect(underWay).toHaveLength(64)
  expect((most - before) / mib).toBeLessThan(128)
})
