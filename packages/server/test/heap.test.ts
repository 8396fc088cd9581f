import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '@slipway/testing/root.ts'
import { expect, test } from 'vitest'

/** Returns the Node flags in a command that starts the server. */
const flagsIn = (line: string): string[] => line.match(/ --[a-z-]+=\d+/g)?.map((flag) => flag.trim()) ?? []

const [shebang = ''] = readFileSync(join(root, 'packages/server/bin/slipway-server.js'), 'utf8').split('\n')
const flags = flagsIn(shebang)

/**
 * Simulates pages that wait for slow clients: each lives for a while and is then released. Prints the largest heap
 * size.
 */
const program = `
  const page = Buffer.alloc(256 * 1024, 'x')
  const livePages = []
  let most = 0
  for (let made = 0; made < 2000; made++) {
    livePages.push(page.toString('latin1'))
    if (livePages.length > 64) livePages.shift()
    if (made % 16 === 0) most = Math.max(most, process.memoryUsage().heapTotal)
  }
  console.log(most / 1024 / 1024)
`

test('the server’s Node flags keep the heap small by collecting garbage early', () => {
  const mostMib = Number(execFileSync(process.execPath, [...flags, '-e', program]))
  // The live pages use 16 MiB of the heap.
  expect(mostMib).toBeGreaterThan(16)
  expect(mostMib).toBeLessThan(160)
})

test('npm start runs the server with the flags of slipway-server', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  expect(flags).not.toEqual([])
  expect(flagsIn(scripts.start)).toEqual(flags)
})
