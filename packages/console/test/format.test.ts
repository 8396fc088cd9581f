import { afterAll, beforeAll, expect, test, vi } from 'vitest'

/** Uses a locale and a time zone that the tests do not have otherwise. */
function browserIn(locale: string, timeZone: string) {
  const { NumberFormat, DateTimeFormat } = Intl
  vi.stubGlobal('Intl', {
    NumberFormat: class extends NumberFormat {
      constructor(_: unknown, options?: Intl.NumberFormatOptions) {
        super(locale, options)
      }
    },
    DateTimeFormat: class extends DateTimeFormat {
      constructor(_: unknown, options?: Intl.DateTimeFormatOptions) {
        super(locale, { timeZone, ...options })
      }
    },
  })
  vi.resetModules()
}

let format: typeof import('../src/lib/format.ts')
let quantities: typeof import('../src/lib/units/quantity.ts')
let sizes: typeof import('../src/lib/units/sizes.ts')
let months: typeof import('../src/lib/months.ts')

beforeAll(async () => {
  browserIn('de-DE', 'Asia/Tokyo')
  format = await import('../src/lib/format.ts')
  quantities = await import('../src/lib/units/quantity.ts')
  sizes = await import('../src/lib/units/sizes.ts')
  months = await import('../src/lib/months.ts')
})
afterAll(() => {
  vi.unstubAllGlobals()
})

/** Formats use narrow and unbreakable spaces. */
const plain = (text: string) => text.replaceAll(/\s/g, ' ')

test('numbers, amounts and percentages have the format of the locale', () => {
  expect(format.count(12_345)).toBe('12.345')
  expect(format.amount(1_234.5)).toBe('1.234,50')
  expect(format.usd(0.0123)).toBe('0,0123 USD')
  expect(plain(format.percent(0.5))).toBe('50 %')
  expect(quantities.quantity(1.25, 'gb_hour')).toBe('1,3 GiB-hours')
  expect(quantities.preciseQuantity(10.3931, 'vm_hour')).toBe('10,393 VM-hours')
  expect(quantities.costAmount(0.004)).toBe('< 0,01')
  expect(quantities.costAmount(0)).toBe('0,00')
  expect(sizes.storedText(1.5 * 1024 ** 3)).toBe('1,5\u00a0GiB')
  expect(format.preciseDuration(1_500)).toBe('1,5 s')
  expect(sizes.memoryText({ memoryGb: 1_176, gpuCount: 8, gpuMemoryGb: 80 })).toBe(
    '1.176\u00a0GB RAM, 8\u00a0×\u00a080\u00a0GB GPU memory',
  )
})

test('times have the format of the locale, and their zone is visible', () => {
  const evening = '2024-11-18T20:05:09.000Z'
  expect(format.localDate(evening)).toBe('19. Nov. 2024, 5:05')
  expect(format.localDate(evening, 'seconds', true)).toBe('19. Nov. 2024, 5:05:09 GMT+9')
  expect(format.localDate(evening, 'days')).toBe('19. Nov. 2024')
  expect(format.zonedTitle('Created')).toBe('Created (GMT+9)')
})

test('months and ranges of days have the format of the locale', () => {
  expect(months.monthText('2026-11')).toBe('November 2026')
  expect(plain(months.daysText('2026-05', 13, 15))).toBe('13.–15. Mai 2026')
  expect(months.daysText('2026-05', 13, 13)).toBe('13. Mai 2026')
  expect(months.daysText('2026-05', 1, 31)).toBe('Mai 2026')
})
