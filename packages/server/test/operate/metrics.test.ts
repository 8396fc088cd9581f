import { useService } from '@slipway/testing/service.ts'
import { expect, test } from 'vitest'

const types = ['counter', 'gauge', 'histogram', 'summary']
const suffixes: Record<string, string[]> = {
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['_sum', '_count'],
}
/** Abbreviated units, and units that are not the base unit of their dimension. */
const wrongUnits = new Set([
  ...['s', 'ms', 'us', 'ns', 'sec', 'm', 'h', 'd', 'b', 'kb', 'mb', 'gb', 'kib', 'mib', 'gib'],
  ...['milliseconds', 'microseconds', 'nanoseconds', 'minutes', 'hours', 'days', 'weeks'],
  ...['bits', 'kilobytes', 'megabytes', 'gigabytes', 'percent'],
])

/** Applies the rules of `promtool check metrics`. Returns a sentence for each metric that breaks a rule. */
function misnamedMetrics(text: string): string[] {
  const lines = text.split('\n')
  const described = (keyword: string) =>
    new Map(
      lines
        .filter((line) => line.startsWith(`# ${keyword} `))
        .map((line) => line.split(' '))
        .map(([, , name, ...rest]) => [name!, rest.join(' ')]),
    )
  const [helps, typeOf] = [described('HELP'), described('TYPE')]
  const known = new Set([...typeOf].flatMap(([name, type]) => [name, ...sampleNames(name, type)]))
  const samples = lines.filter((line) => line !== '' && !line.startsWith('#'))
  const undeclared = samples.map((line) => /^[^{ ]+/.exec(line)![0]).filter((name) => !known.has(name))
  return [
    ...undeclared.map((name) => `${name} has no TYPE`),
    ...[...typeOf].flatMap(([name, type]) => [
      ...(helps.get(name) ? [] : [`${name} has no HELP`]),
      ...brokenRules(name, type).map((rule) => `${name}: ${rule}`),
    ]),
  ]
}

const sampleNames = (name: string, type: string) => (suffixes[type] ?? []).map((suffix) => `${name}${suffix}`)

function brokenRules(name: string, type: string): string[] {
  const words = name.split('_')
  const rules: [boolean, string][] = [
    [types.includes(type), `has the unknown type ${type}`],
    [(type === 'counter') === name.endsWith('_total'), 'counters, and only they, end with _total'],
    [!/_(bucket|sum|count)$/.test(name), 'ends like a sample of a histogram'],
    [/^[a-z][a-z0-9_]*$/.test(name), 'is not in snake_case'],
    [!words.some((word) => types.includes(word)), 'contains the name of a type'],
    [!words.some((word) => wrongUnits.has(word)), 'has an abbreviated unit, or not the base unit'],
  ]
  return rules.filter(([isKept]) => !isKept).map(([, rule]) => rule)
}

test('metrics follow the Prometheus naming rules', async () => {
  const service = await useService()
  await service.call('vmList')
  const { body } = await service.request('GET', '/metrics', { token: null })
  expect(String(body)).toContain('slipway_http_requests_total{')
  expect(misnamedMetrics(String(body))).toEqual([])
})

test.each([
  [
    'a gauge that is named like a counter',
    '# HELP open_total Open.\n# TYPE open_total gauge\nopen_total 1\n',
  ],
  ['a counter without its suffix', '# HELP opened Opened.\n# TYPE opened counter\nopened 1\n'],
  ['an abbreviated unit', '# HELP wait_ms Wait.\n# TYPE wait_ms gauge\nwait_ms 1\n'],
  ['a metric without help', '# TYPE open gauge\nopen 1\n'],
  ['a metric without a type', 'open 1\n'],
])('the naming check detects %s', (_name, text) => {
  expect(misnamedMetrics(text)).toHaveLength(1)
})
