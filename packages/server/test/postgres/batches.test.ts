import { expect, test } from 'vitest'
import { Failure } from '../../src/domain/failure.ts'
import { Batches, type BatchResult } from '../../src/postgres/batches.ts'
import { TryAgain, UnknownOutcome } from '../../src/postgres/database.ts'

/** Records the batches in the order of processing. The first batch is blocked while the others form. */
function batchesOf(work: (items: string[], isAlone: boolean) => BatchResult<string>[]) {
  const lists: string[] = []
  let begin = () => {}
  const firstBegins = new Promise<void>((resolve) => {
    begin = resolve
  })
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const batches = new Batches<string, string>({
    maxItems: 4,
    async handle(items, isAlone) {
      if (items.includes('first')) {
        begin()
        await released
      } else lists.push(`${items.join(' ')}${isAlone ? ' alone' : ''}`)
      return items.includes('first') ? ['done'] : work(items, isAlone)
    },
  })
  const first = batches.submit('first')
  const submitAll = async (...items: string[]) => {
    await firstBegins
    const submitted = items.map((item) => batches.submit(item).catch((error: Error) => error.message))
    release()
    await first
    return Promise.all(submitted)
  }
  return { lists, submitAll }
}

test('requests that arrive while a batch runs form the next batch, in order and up to the maximum size', async () => {
  const { lists, submitAll } = batchesOf((items) => items.map((item) => item.toUpperCase()))
  const responses = await submitAll('a', 'b', 'c', 'd', 'e', 'f')
  expect(responses).toEqual(['A', 'B', 'C', 'D', 'E', 'F'])
  expect(lists).toEqual(['a b c d', 'e f'])
})

test('requests of one turn of the event loop form one batch', async () => {
  const lists: string[][] = []
  const work = async (items: string[]) => {
    lists.push(items)
    return items
  }
  const batches = new Batches<string, string>({ maxItems: 4, handle: work })
  await Promise.all(['a', 'b', 'c'].map((item) => batches.submit(item)))
  await batches.submit('d')
  expect(lists).toEqual([['a', 'b', 'c'], ['d']])
})

test('a request that is refused or would have to wait does not delay the others', async () => {
  const { lists, submitAll } = batchesOf((items, isAlone) =>
    items.map((item) => {
      if (item === 'bad') return new Failure('conflict', 'refused')
      return item === 'slow' && !isAlone ? new TryAgain('it would wait') : `${item} done`
    }),
  )
  expect(await submitAll('good', 'bad', 'slow')).toEqual(['good done', 'refused', 'slow done'])
  expect(lists).toEqual(['good bad slow', 'slow alone'])
})

test('a batch that fails as a whole is repeated one by one, and only the failing request fails', async () => {
  const { lists, submitAll } = batchesOf((items) => {
    if (items.includes('poison')) throw new Error('broken')
    return items
  })
  expect(await submitAll('one', 'poison', 'two')).toEqual(['one', 'broken', 'two'])
  expect(lists).toEqual(['one poison two', 'one alone', 'poison alone', 'two alone'])
})

test('a batch whose commit may have happened is not repeated', async () => {
  const { lists, submitAll } = batchesOf(() => {
    throw new UnknownOutcome('the connection broke during the commit')
  })
  const lost = 'the connection broke during the commit'
  expect(await submitAll('one', 'two')).toEqual([lost, lost])
  expect(lists).toEqual(['one two'])
})
