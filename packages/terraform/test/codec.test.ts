import { decode, ExtData, encode } from '@msgpack/msgpack'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeJsonState, decodeState, encodeState, isSame } from '../src/values/codec.ts'
import { type Attribute, unknown, type Values } from '../src/values/types.ts'

const attribute = (name: string, type: Attribute['type']): Attribute => ({
  ...{ name, type, description: '', use: 'optional', isComputed: false },
})
const attributes = [
  attribute('text', 'string'),
  attribute('number', 'number'),
  attribute('names', { set: 'string' }),
  attribute('labels', { map: 'string' }),
  attribute('nested', {
    nesting: 'list',
    attributes: [attribute('flag', 'bool'), attribute('size', 'number')],
  }),
]

const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })
const values = fc.record({
  text: orNull(fc.oneof(fc.string(), fc.constant(unknown))),
  number: orNull(fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))),
  names: orNull(fc.array(fc.string())),
  labels: orNull(
    fc.dictionary(
      fc.string({ minLength: 1 }).filter((key) => key !== '__proto__'),
      fc.string(),
    ),
  ),
  nested: orNull(
    fc.array(
      fc.record({ flag: orNull(fc.boolean()), size: orNull(fc.oneof(fc.nat(), fc.constant(unknown))) }),
    ),
  ),
}) as fc.Arbitrary<Values>

test('a state is the same after it was sent and received', () => {
  fc.assert(
    fc.property(values, (state) => {
      const received = decodeState(encodeState(state, attributes), attributes)!
      expect(isSame(received, state)).toBe(true)
      expect(isSame(encodedAgain(received), state)).toBe(true)
    }),
  )
})

const encodedAgain = (state: Values) => decodeState(encodeState(state, attributes), attributes)!

test('a fraction is sent as decimal digits, because Terraform compares decimals', () => {
  const sent = decode(encodeState({ number: 0.1 }, attributes).msgpack) as Values
  expect(sent.number).toBe('0.1')
  expect(decodeState({ msgpack: encode({ number: '500.25' }) }, attributes)!.number).toBe(500.25)
})

test('a MessagePack extension is decoded as an unknown value, with or without details', () => {
  for (const type of [0, 12])
    expect(
      decodeState({ msgpack: encode({ text: new ExtData(type, new Uint8Array([0])) }) }, attributes)!.text,
    ).toBe(unknown)
})

test('a state of another version of the provider is read: new attributes are null, old ones are dropped', () => {
  const json = Buffer.from(JSON.stringify({ text: 'kept', removed: 1 }))
  expect(decodeJsonState(json, attributes)).toEqual({
    ...{ text: 'kept', number: null, names: null, labels: null, nested: null },
  })
})

test('two values are the same if only the order of items differs, or if a field is empty in one and missing in the other', () => {
  expect(isSame(['a', 'b'], ['b', 'a'])).toBe(true)
  expect(isSame([{ cidr: '10.0.0.0/8', resource_id: '' }], [{ cidr: '10.0.0.0/8', resource_id: null }])).toBe(
    true,
  )
  expect(isSame(['a'], ['a', 'a'])).toBe(false)
  expect(isSame(unknown, null)).toBe(false)
})
