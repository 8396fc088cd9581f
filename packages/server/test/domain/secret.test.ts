import { expect, test } from 'vitest'
import { hashPassword, isPasswordRight } from '../../src/domain/password.ts'
import { hashSecret, newToken, open, seal } from '../../src/domain/secret.ts'

test('a token tells its kind and is never the same', () => {
  const tokens = Array.from({ length: 100 }, () => newToken('refresh'))
  for (const token of tokens) expect(token).toMatch(/^slpr_[\w-]{43}$/)
  expect(new Set(tokens).size).toBe(100)
  expect(hashSecret(tokens[0]!)).toHaveLength(32)
})

test('a sealed text opens for the holder of the secret alone', () => {
  const sealed = seal('the secret', 'what it says: ÄÖ')
  expect(open('the secret', sealed)).toBe('what it says: ÄÖ')
  expect(() => open('another secret', sealed)).toThrow()
  expect(sealed.includes(Buffer.from('what it says'))).toBe(false)
})

test('a sealed text does not open when a bit of it was changed', () => {
  const sealed = seal('the secret', 'text')
  for (const index of sealed.keys()) {
    const changed = Buffer.from(sealed)
    changed[index]! ^= 1
    expect(() => open('the secret', changed)).toThrow()
  }
})

test('a sealed text looks different each time', () => {
  expect(seal('the secret', 'text').equals(seal('the secret', 'text'))).toBe(false)
})

test('a password is right for its own hash, which is Argon2id and salted', async () => {
  const [one, other] = [await hashPassword('correct horse'), await hashPassword('correct horse')]
  expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  expect(one).not.toBe(other)
  expect(await isPasswordRight(one, 'correct horse')).toBe(true)
  expect(await isPasswordRight(one, 'Correct horse')).toBe(false)
})

test('a password of nobody is never right', async () => {
  expect(await isPasswordRight(null, '')).toBe(false)
})
