import fc from 'fast-check'
import { expect, it } from 'vitest'
import { editDistance, nearest } from '../../src/domain/nearest.ts'

it.each([
  ['', '', 0],
  ['port', 'port', 0],
  ['prot', 'port', 1],
  ['por', 'port', 1],
  ['ports', 'port', 1],
  ['pork', 'port', 1],
  ['kitten', 'sitting', 3],
  ['', 'abc', 3],
])('from %j to %j it takes %i changes', (a, b, distance) => expect(editDistance(a, b)).toBe(distance))

it('counts the same in both directions and never more than the longer word', () => {
  const word = fc.string({ maxLength: 8 })
  fc.assert(
    fc.property(word, word, (a, b) => {
      expect(editDistance(a, b)).toBe(editDistance(b, a))
      expect(editDistance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length))
      expect(editDistance(a, b) === 0).toBe(a === b)
    }),
  )
})

it('finds the choice that was meant, whatever its case', () => {
  expect(nearest('WORKR', ['all', 'api', 'worker'])).toBe('worker')
  expect(nearest('x'.repeat(100_000), ['all', 'api'])).toBe('all')
})
