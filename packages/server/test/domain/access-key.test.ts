import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isAccessKeyShape, newAccessKey } from '../../src/domain/access-key.ts'

const anyKey = fc
  .infiniteStream(fc.integer({ min: 0, max: 255 }))
  .map((bytes) => newAccessKey((n) => Uint8Array.from({ length: n }, () => bytes.next().value as number)))

test('a new access key has the documented format and is recognized', () => {
  fc.assert(
    fc.property(anyKey, ({ text, prefix }) => {
      expect(text).toMatch(/^slp_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}$/)
      expect(text.slice(4, 12)).toBe(prefix)
      expect(isAccessKeyShape(text)).toBe(true)
    }),
  )
})

test('the checksum of an access key never changes, because keys outlive versions', () => {
  expect(newAccessKey((n) => new Uint8Array(n)).text).toBe(`slp_00000000_${'0'.repeat(37)}1WOV8J`)
})

test('an access key with any one character changed is rejected', () => {
  fc.assert(
    fc.property(anyKey, fc.nat(54), fc.constantFrom(...'0aZ_-!é'), ({ text }, at, char) => {
      const changed = text.slice(0, at) + char + text.slice(at + 1)
      expect(isAccessKeyShape(changed)).toBe(changed === text)
    }),
  )
})

test('an access key that is longer, shorter or wrapped is rejected', () => {
  const { text } = newAccessKey(randomBytes)
  for (const other of ['', text.slice(0, -1), `${text}0`, ` ${text}`, `${text}\n`, text.toUpperCase()]) {
    expect(isAccessKeyShape(other)).toBe(false)
  }
})

test('every character of an access key is equally likely', () => {
  let next = 0
  const everyByteInTurn = (n: number) => Uint8Array.from({ length: n }, () => next++ % 256)
  const counts = new Map<string, number>()
  for (let i = 0; i < 248 * 4; i++) {
    const { text, prefix } = newAccessKey(everyByteInTurn)
    for (const char of prefix + text.slice(13, 50)) counts.set(char, (counts.get(char) ?? 0) + 1)
  }
  expect(counts.size).toBe(62)
  expect(Math.max(...counts.values()) - Math.min(...counts.values())).toBeLessThanOrEqual(1)
})
