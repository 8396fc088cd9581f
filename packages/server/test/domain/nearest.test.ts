import { expect, test } from 'vitest'
import { nearest } from '../../src/domain/nearest.ts'

test.each([
  ['prot', 'port'],
  ['por', 'port'],
  ['ports', 'port'],
  ['pork', 'port'],
  ['WORKR', 'worker'],
])('the nearest choice to %j is %s, regardless of case', (text, expected) => {
  expect(nearest(text, ['worker', 'port', 'role'])).toBe(expected)
})

test.each(['', 'x', 'nope', 'x'.repeat(100_000)])(
  'a word that is too different has no nearest choice (%#)',
  (text) => {
    expect(nearest(text, ['worker', 'port', 'role'])).toBeUndefined()
  },
)
