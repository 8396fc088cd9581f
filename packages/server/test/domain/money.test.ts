import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  addExact,
  centsToUsd,
  compareExact,
  costOf,
  displayUsd,
  type Exact,
  hourlyCost,
  msPerHour,
  parseDecimal,
  quantityHours,
  timesExact,
  toCents,
  ZERO,
} from '../../src/domain/money.ts'

const anyQuantity = fc.bigInt({ min: 0n, max: 10n ** 18n })
const anyPrice = fc
  .tuple(fc.nat(9999), fc.nat(99_999_999))
  .map(([whole, fraction]) => `${whole}.${String(fraction).padStart(8, '0')}`)
const anyAmount = fc
  .tuple(anyQuantity, anyPrice, fc.boolean())
  .map(([ms, price, isCredit]) => timesExact(costOf(ms, price), isCredit ? -1n : 1n))

test('the cost of a disk is exactly 0.00013 USD per GB and hour', () => {
  expect(costOf(1024n * msPerHour, '0.00013')).toEqual(parseDecimal('0.13312'))
  expect(displayUsd(costOf(1n, '0.00013'), 15)).toBe('0.000000000036111')
  expect(hourlyCost(8, '1.45')).toEqual(parseDecimal('11.6'))
})

test('costs do not depend on how time or quantity is split', () => {
  fc.assert(
    fc.property(fc.array(anyQuantity, { maxLength: 20 }), anyPrice, (parts, price) => {
      const whole = costOf(
        parts.reduce((a, b) => a + b, 0n),
        price,
      )
      expect(addExact(...parts.map((part) => costOf(part, price)))).toEqual(whole)
    }),
  )
})

test('costs do not depend on trailing zeros of a price', () => {
  fc.assert(
    fc.property(anyQuantity, anyPrice, (ms, price) => {
      expect(costOf(ms, `${price}000`)).toEqual(costOf(ms, price))
    }),
  )
})

test.each(['', '.5', '1.', '1e-5', '+1', ' 1', '1 ', '1,5', 'NaN', '0x1', '١'])(
  'the price %j is rejected',
  (price) => {
    expect(() => costOf(1n, price)).toThrow(RangeError)
  },
)

test('amounts of money add up in any order', () => {
  fc.assert(
    fc.property(anyAmount, anyAmount, anyAmount, (a, b, c) => {
      expect(addExact(a, b)).toEqual(addExact(b, a))
      expect(addExact(addExact(a, b), c)).toEqual(addExact(a, addExact(b, c)))
      expect(addExact(a, timesExact(a, -1n))).toEqual(ZERO)
    }),
  )
})

test('comparing amounts of money agrees with the sign of their difference', () => {
  fc.assert(
    fc.property(anyAmount, anyAmount, (a, b) => {
      const difference = addExact(a, timesExact(b, -1n)).numerator
      expect(compareExact(a, b)).toBe(difference < 0n ? -1 : difference > 0n ? 1 : 0)
    }),
  )
})

test.each([
  ['0.005', 1n],
  ['0.00499999', 0n],
  ['-0.005', -1n],
  ['-0.0049', 0n],
  ['1.235', 124n],
  ['12', 1200n],
])('%s USD are rounded to %s cents', (usd, cents) => expect(toCents(parseDecimal(usd))).toBe(cents))

test('rounding to cents is never off by more than half a cent, and is symmetric for credits', () => {
  fc.assert(
    fc.property(anyAmount, (amount) => {
      const back: Exact = parseDecimal(centsToUsd(toCents(amount)))
      const error = addExact(amount, timesExact(back, -1n))
      const size = error.numerator < 0n ? timesExact(error, -1n) : error
      expect(compareExact(size, parseDecimal('0.005'))).toBeLessThanOrEqual(0)
      expect(toCents(timesExact(amount, -1n))).toBe(-toCents(amount))
    }),
  )
})

test('an amount of money is shown with the requested number of decimals', () => {
  expect(displayUsd(parseDecimal('0.13312'))).toBe('0.133120')
  expect(displayUsd(parseDecimal('-1.5'), 0)).toBe('-2')
  expect(displayUsd(ZERO)).toBe('0.000000')
  expect(displayUsd(parseDecimal('-0.0000001'))).toBe('0.000000')
  expect(centsToUsd(5n)).toBe('0.05')
  expect(centsToUsd(-1234n)).toBe('-12.34')
})

test('an amount of money that was parsed from text is shown as the same text', () => {
  fc.assert(fc.property(anyPrice, (price) => displayUsd(parseDecimal(price), 8) === price))
})

test('quantities are shown in hours', () => {
  expect(quantityHours(msPerHour * 24n)).toBe('24.000000')
  expect(quantityHours(1n)).toBe('0.000000')
  expect(quantityHours(1800n)).toBe('0.000500')
  expect(quantityHours(msPerHour / 2n, 1)).toBe('0.5')
})
