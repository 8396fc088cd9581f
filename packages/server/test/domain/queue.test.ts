import { expect, test } from 'vitest'
import { Queue } from '../../src/domain/sign-in/queue.ts'

test('a queue runs a few tasks concurrently and the rest in order, and refuses tasks when it is full', async () => {
  const queue = new Queue(2, 50)
  const order: number[] = []
  let [working, mostWorking] = [0, 0]
  const work = (number: number) => async () => {
    mostWorking = Math.max(mostWorking, ++working)
    order.push(number)
    await new Promise(setImmediate)
    working--
  }
  const pending = Array.from({ length: 80 }, (_, number) => queue.inTurn(work(number)))
  const refused = (await Promise.allSettled(pending)).filter(({ status }) => status === 'rejected')
  expect(refused).toHaveLength(80 - 52)
  for (const outcome of refused)
    expect(outcome).toMatchObject({ reason: { code: 'rate_limited', retryAfterSeconds: 1 } })
  expect([mostWorking, order]).toEqual([2, Array.from({ length: 52 }, (_, number) => number)])
})

test('a queue continues after a task that failed', async () => {
  const queue = new Queue(1, 1)
  const failing = queue.inTurn(() => Promise.reject(new Error('no')))
  const next = queue.inTurn(async () => 'done')
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('done')
  expect(await queue.inTurn(async () => 'again')).toBe('again')
})
