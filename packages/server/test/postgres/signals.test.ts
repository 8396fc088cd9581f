import { randomUUID } from 'node:crypto'
import { createDatabase } from '@slipway/testing/database.ts'
import { eventually } from '@slipway/testing/eventually.ts'
import { expect, onTestFinished, test } from 'vitest'
import { Signals } from '../../src/postgres/signals.ts'

async function open(count: number): Promise<Signals[]> {
  const database = await createDatabase()
  const all = Array.from({ length: count }, () => new Signals(database.url))
  await Promise.all(all.map((each) => each.open()))
  onTestFinished(async () => {
    await Promise.all(all.map((each) => each.close()))
    await database.drop()
  })
  return all
}

test('another process is notified of every operation that ended, even of a thousand', async () => {
  const [here, there] = await open(2)
  const received: string[] = []
  there!.on('ended', (ids) => received.push(...(ids ?? [])))
  const ids = Array.from({ length: 1_000 }, () => randomUUID())
  for (const id of ids) here!.send('ended', id)
  await eventually(() => received.length >= ids.length)
  expect(received.toSorted()).toEqual(ids.toSorted())
})

test('a signal without an id replaces pending signals with ids', async () => {
  const [here, there] = await open(2)
  const received: (string[] | undefined)[] = []
  there!.on('ended', (ids) => received.push(ids))
  here!.send('ended', randomUUID())
  here!.send('ended')
  here!.send('ended', randomUUID())
  await eventually(() => received.length > 0)
  expect(received).toEqual([undefined])
})

test('signals of many processes are handled no more often than signals of one', async () => {
  const [listener, ...speakers] = await open(6)
  let count = 0
  listener!.on('operations', () => count++)
  const startedAt = performance.now()
  for (let round = 0; round < 20; round++) {
    for (const speaker of speakers) speaker.send('operations')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await eventually(() => count > 0)
  const elapsedMs = performance.now() - startedAt
  // Signals are handled once in twenty milliseconds, as with one sender. Without the limit, they would be handled five
  // times as often.
  expect(count).toBeLessThanOrEqual(Math.ceil(elapsedMs / 20) + 1)
})

test('a wake-up reaches only the process that sends it', async () => {
  const [here, there] = await open(2)
  const received: string[] = []
  here!.on('operations', () => received.push('here'))
  there!.on('operations', () => received.push('there'))
  there!.on('events', () => received.push('there: events'))
  here!.wake('operations')
  here!.send('events')
  await eventually(() => received.includes('there: events'))
  expect(received).toEqual(['here', 'there: events'])
})
