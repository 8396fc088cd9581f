import { expect, test } from 'vitest'
import { hashPassword, isPasswordCorrect } from '../../src/domain/password.ts'
import { hashSecret, newToken, open, seal } from '../../src/domain/secret.ts'

test('a token shows its kind and is always different', () => {
  const tokens = Array.from({ length: 100 }, () => newToken('refresh'))
  for (const token of tokens) expect(token).toMatch(/^slpr_[\w-]{43}$/)
  expect(new Set(tokens).size).toBe(100)
  expect(hashSecret(tokens[0]!)).toHaveLength(32)
})

test('an encrypted text can be decrypted only with its secret', () => {
  const sealed = seal('the secret', 'what it says: ÄÖ')
  expect(open('the secret', sealed)).toBe('what it says: ÄÖ')
  expect(() => open('another secret', sealed)).toThrow()
  expect(sealed.includes(Buffer.from('what it says'))).toBe(false)
})

test('an encrypted text cannot be decrypted if one bit was changed', () => {
  const sealed = seal('the secret', 'text')
  for (const index of sealed.keys()) {
    const changed = Buffer.from(sealed)
    changed[index]! ^= 1
    expect(() => open('the secret', changed)).toThrow()
  }
})

test('an encrypted text is different each time', () => {
  expect(seal('the secret', 'text').equals(seal('the secret', 'text'))).toBe(false)
})

test('a password matches its own hash, which is Argon2id and salted', async () => {
  const [one, other] = [await hashPassword('correct horse'), await hashPassword('correct horse')]
  expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  expect(one).not.toBe(other)
  expect(await isPasswordCorrect(one, 'correct horse')).toBe(true)
  expect(await isPasswordCorrect(one, 'Correct horse')).toBe(false)
})

test('the password check of an unknown user always fails', async () => {
  expect(await isPasswordCorrect(null, '')).toBe(false)
})
