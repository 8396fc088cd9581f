import { expect, test } from 'vitest'
import { ReadQueue } from '../../src/http/family/read-queue.ts'

test('the reads of an owner wait for each other, up to a limit that does not affect other owners', async () => {
  const queue = new ReadQueue()
  let running = 0
  let most = 0
  let release = () => {}
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  const read = async () => {
    most = Math.max(most, ++running)
    await gate
    running--
    return 'read'
  }
  const reads = Array.from({ length: 1_032 }, () => queue.run('one', read))
  await expect(queue.run('one', read)).rejects.toMatchObject({ code: 'unavailable' })
  const other = queue.run('other', read)
  release()
  expect(new Set(await Promise.all([...reads, other]))).toEqual(new Set(['read']))
  expect(most).toBe(33)
  expect(await queue.run('one', read)).toBe('read')
})
