import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hasExpired, readTestCard, testCards } from '../../src/domain/cards.ts'
import { type Charge, chargeLines, sumUsd, totalCents, usdByProduct } from '../../src/domain/charges.ts'
import { compareExact, toCents } from '../../src/domain/money.ts'
import {
  addDays,
  addMonths,
  daysBetween,
  invoiceId,
  isLastOfMonth,
  monthOf,
} from '../../src/domain/months.ts'

test('billing days and months handle leap years and ends of months', () => {
  expect(addDays('2028-02-28', 1)).toBe('2028-02-29')
  expect(addDays('2100-02-28', 1)).toBe('2100-03-01')
  expect(isLastOfMonth('2028-02-28')).toBe(false)
  expect(isLastOfMonth('2028-02-29')).toBe(true)
  expect(addMonths('2026-12-01', 1)).toBe('2027-01-01')
  expect(addMonths('2026-01-01', -1)).toBe('2025-12-01')
  expect(monthOf('2026-11-14')).toBe('2026-11-01')
  expect(daysBetween('2028-02-01', '2028-03-01')).toBe(29)
})

test('the id of an invoice is a UUID of version 7, the same each time, and increases with the month', () => {
  const ids = ['2026-10-01', '2026-11-01', '2026-12-01'].map((month) => invoiceId('o-1', month))
  for (const id of ids)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(ids.toSorted()).toEqual(ids)
  expect(invoiceId('o-1', '2026-10-01')).toBe(ids[0])
  expect(invoiceId('o-2', '2026-10-01')).not.toBe(ids[0])
})

const charge = fc.record({
  project_id: fc.constantFrom('p1', 'p2'),
  product_name: fc.constantFrom('a40.1x', 'persistent-ssd'),
  resource_type: fc.constant('vm' as const),
  quantity_ms: fc.bigInt({ min: 1n, max: 10n ** 16n }).map(String),
  cost_usd_ms: fc.option(fc.bigInt({ min: 0n, max: 10n ** 14n }).map((n) => `${n}.12345`)),
})

test('charges are rounded once in each line, and a line never decreases when usage is added', () => {
  fc.assert(
    fc.property(fc.array(charge, { maxLength: 20 }), charge, (charges: Charge[], more: Charge) => {
      const lines = chargeLines(charges)
      const cents = totalCents(lines)
      const exact = toCents(sumUsd(charges))
      const distance = cents > exact ? cents - exact : exact - cents
      expect(distance <= BigInt(lines.length)).toBe(true)
      expect(totalCents(chargeLines([...charges, more])) >= cents).toBe(true)
      expect(chargeLines(charges.toReversed()).toSorted(byKey)).toEqual(lines.toSorted(byKey))
      const products = usdByProduct(charges)
      for (const [index, { usd }] of products.entries())
        if (index > 0) expect(compareExact(products[index - 1]!.usd, usd)).toBeGreaterThanOrEqual(0)
    }),
  )
})
test('products are sorted by cost even if they differ by less than a hundredth of a cent', () => {
  const chargeOf = (product_name: string, usd_ms: string): Charge => ({
    project_id: 'p1',
    product_name,
    resource_type: 'vm',
    quantity_ms: '1',
    cost_usd_ms: usd_ms,
  })
  const products = usdByProduct([
    chargeOf('a40.1x', '99999999999985.12345'),
    chargeOf('persistent-ssd', '99999999999986.12345'),
  ])
  expect(products.map(({ product_name }) => product_name)).toEqual(['persistent-ssd', 'a40.1x'])
})

const byKey = (a: { project_id: string; product_name: string }, b: typeof a) =>
  `${a.project_id} ${a.product_name}`.localeCompare(`${b.project_id} ${b.product_name}`)

const read = (number: string, expiry: string) => readTestCard(number, expiry, '2026-11-14')

test('the expiry of a test card is accepted in common formats, and its number is not kept', () => {
  for (const expiry of ['11/26', '12/26', '1/2030', ' 01 / 30 ']) {
    const reading = read('4242-4242 42424242', expiry)
    expect(reading).toMatchObject({
      ok: true,
      card: { brand: 'Visa', last4: '4242', reference: 'test-works' },
    })
    expect(JSON.stringify(reading)).not.toContain('42424242')
  }
})

test('a test card is rejected if it is unknown, declined, expired or its expiry is invalid', () => {
  expect(read('4111111111111111', '12/30')).toEqual({ ok: false, problem: 'unknown' })
  expect(read('', '12/30')).toEqual({ ok: false, problem: 'unknown' })
  for (const expiry of ['', '0/30', '13/30', '12-30', '12/3030', '12/1999'])
    expect(read('4242424242424242', expiry)).toEqual({ ok: false, problem: 'bad-expiry' })
  expect(read('4242424242424242', '10/26')).toEqual({ ok: false, problem: 'expired' })
  const outcomes = testCards.map(({ number }) => {
    const reading = read(number, '12/30')
    return reading.ok ? reading.card.reference : reading.problem
  })
  expect(outcomes).toEqual(['test-works', 'test-declined-later', 'declined', 'expired'])
})

test('a test card is valid until the end of its month', () => {
  const card = { expiresMonth: 2, expiresYear: 2028 }
  expect(hasExpired(card, '2028-02-29')).toBe(false)
  expect(hasExpired(card, '2028-03-01')).toBe(true)
})
