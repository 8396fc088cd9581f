import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nameOfWords, parseRuleWords } from '../src/commands/firewall/rule-words.ts'
import { monthRange } from '../src/commands/usage.ts'
import { resolveAmong } from '../src/core/names.ts'
import { parseDurationMs, parsePair } from '../src/core/parse.ts'
import { NotFound, UsageError } from '../src/errors/cli-error.ts'
import { bar, usd } from '../src/output/text.ts'

test.each([
  ['ssh from 203.0.113.0/24', { protocols: ['tcp'], ports: ['22'], from: ['203.0.113.0/24'], to: [] }],
  ['53/udp to dns-1', { protocols: ['udp'], ports: ['53'], from: [], to: ['dns-1'] }],
  ['3000-8080,9000', { protocols: ['tcp'], ports: ['3000-8080', '9000'], from: [], to: [] }],
  [
    'ping from 10.0.0.1,10.0.0.2 to a b',
    { protocols: ['icmp'], ports: [], from: ['10.0.0.1', '10.0.0.2'], to: ['a', 'b'] },
  ],
])('the text of a firewall rule is parsed: %s', (text, rule) => {
  expect(parseRuleWords(text.split(' '))).toEqual(rule)
})

test.each(['smtp2', 'ssh 203.0.113.0/24', 'ssh from', '22/sctp', '-1'])(
  'an invalid text of a firewall rule is rejected: %s',
  (text) => {
    expect(() => parseRuleWords(text.split(' '))).toThrow(UsageError)
  },
)

test('the name generated from the text of a firewall rule is always valid', () => {
  const word = fc.string({ minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), (words) => {
      expect(nameOfWords('allow', words)).toMatch(/^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/)
    }),
  )
  expect(nameOfWords('allow', ['ssh', 'from', '203.0.113.0/24'])).toBe('allow-ssh-from-203-0-113-0-24')
})

const things = [
  { id: '1', name: 'train-1' },
  { id: '2', name: 'twin' },
  { id: '3', name: 'twin' },
]
const find = (wanted: string) => resolveAmong('VM', wanted, things, (thing) => thing)

test('a name or an id finds its resource', () => {
  expect(find('train-1').id).toBe('1')
  expect(find('3').name).toBe('twin')
})

test('an ambiguous name lists the candidates', () => {
  expect(() => find('twin')).toThrow(expect.objectContaining({ exitCode: 2, hints: ['2', '3'] }))
})

test('an unknown name suggests the nearest', () => {
  expect(() => find('train1')).toThrow(expect.objectContaining({ hints: ['Did you mean train-1?'] }))
  expect(() => find('zebra')).toThrow(NotFound)
})

test('durations are read in their units, and other text is rejected', () => {
  expect(parseDurationMs('90s')).toBe(90_000)
  expect(parseDurationMs('1h30m')).toBe(5_400_000)
  for (const text of ['', '4', '4 h', 'h', '4h!', '-4h'])
    expect(() => parseDurationMs(text)).toThrow(UsageError)
})

test('pairs consist of a name and a number', () => {
  expect(parsePair('a100.1x=1.45')).toEqual(['a100.1x', 1.45])
  for (const text of ['a100.1x', '=1', 'a=', 'a=b']) expect(() => parsePair(text)).toThrow(UsageError)
})

test('a month ends on its last day', () => {
  expect(monthRange('2024-02')).toEqual({ start_date: '2024-02-01', end_date: '2024-02-29' })
  expect(monthRange(undefined, new Date('2026-11-15T00:00:00Z'))).toEqual({
    start_date: '2026-11-01',
    end_date: '2026-11-30',
  })
  expect(() => monthRange('2026-13')).toThrow(UsageError)
})

test('money has cents, very small prices keep their digits, and an unset price is a dash', () => {
  expect([1234.5, 0, 0.00013, null].map(usd)).toEqual(['$1,234.50', '$0.00', '$0.00013', '-'])
})

test('a bar is never longer than its width, and is visible for every amount above zero', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 2, noNaN: true }),
      fc.integer({ min: 1, max: 80 }),
      (share, width) => {
        const drawn = bar(share, width)
        expect(drawn.length).toBeLessThanOrEqual(width)
        expect(drawn.length > 0).toBe(share > 0)
      },
    ),
  )
})
