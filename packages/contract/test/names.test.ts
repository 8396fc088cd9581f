import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isResourceName, parseSshDestination } from '../src/names.ts'
import { Password, ResourceName } from '../src/schema.ts'

const ajv = new Ajv2020({ strict: false })
/** The validator that the server uses for requests. */
const fitsName = ajv.compile(ResourceName)
const fitsPassword = ajv.compile(Password)

test.each(['a', '0', 'Train-1_b', 'x'.repeat(63)])('the resource name %s is accepted', (name) => {
  expect([fitsName(name), isResourceName(name)]).toEqual([true, true])
})

test.each(['', '-a', '_a', 'x'.repeat(64), 'a b', 'a.b', 'ä', 'a\n', 'a\0', ' a'])(
  'the resource name %j is rejected',
  (name) => {
    expect([fitsName(name), isResourceName(name)]).toEqual([false, false])
  },
)

test('a resource name is valid if it starts with a letter or digit and has only letters, digits, _ and -', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 63, unit: 'binary' }), (name) => {
      const isPlain = [...name].every((c, i) => /[A-Za-z0-9]/.test(c) || (i > 0 && '_-'.includes(c)))
      expect(isResourceName(name)).toBe(isPlain)
    }),
  )
})

test('the schema of requests and isResourceName accept the same names', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 70 }), (name) => {
      expect(fitsName(name)).toBe(isResourceName(name))
    }),
  )
})

test('a password needs 8 to 256 characters and nothing else', () => {
  const lengths: [string, boolean][] = [
    ['1234567', false],
    ['12345678', true],
    ['🔑'.repeat(8), true],
    ['🔑'.repeat(7), false],
    ['x'.repeat(256), true],
    ['x'.repeat(257), false],
  ]
  for (const [text, isFine] of lengths) expect(fitsPassword(text), text).toBe(isFine)
})

test('an SSH destination is a user, an address and an optional port', () => {
  expect(parseSshDestination('ubuntu@198.18.0.4')).toEqual({ user: 'ubuntu', host: '198.18.0.4', port: 22 })
  expect(parseSshDestination('svc_a@gpu-1.example.com:2222')).toEqual({
    user: 'svc_a',
    host: 'gpu-1.example.com',
    port: 2222,
  })
})

test.each([
  ...['', 'x', '@', 'ubuntu@', '@198.18.0.4', '-oProxyCommand=evil', '-oProxyCommand=evil@198.18.0.4'],
  ...['ubuntu@-oProxyCommand=evil', 'ubuntu@198.18.0.4 -v', 'ubuntu@198.18.0.4\n', 'a b@198.18.0.4'],
  ...[
    'ubuntu@$(evil)',
    'ubuntu@a;b',
    'ubuntu@198.18.0.4:0',
    'ubuntu@198.18.0.4:65536',
    'ubuntu@198.18.0.4:22x',
  ],
])('the SSH destination %j is rejected', (text) => {
  expect(parseSshDestination(text)).toBeUndefined()
})
