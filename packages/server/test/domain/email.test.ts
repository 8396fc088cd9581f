import fc from 'fast-check'
import { expect, test } from 'vitest'
import { normalizeEmail } from '../../src/domain/email.ts'
import { scriptProblem } from '../../src/domain/guest/scripts.ts'

test.each([
  ['Ada@Example.COM', 'ada@example.com'],
  ["o'hara+gpu@mail.example.co", "o'hara+gpu@mail.example.co"],
  ['demo@localhost', 'demo@localhost'],
  ['jürgen@example.de', 'jürgen@example.de'],
])('the e-mail address %s is accepted', (text, normal) => expect(normalizeEmail(text)).toBe(normal))

test.each([
  '',
  '@',
  'a',
  'a@',
  '@b',
  ' a@b.c',
  'a@b.c ',
  'a b@c.d',
  'a@b@c.d',
  'a@b..c',
  'a@-b.c',
  'a@b.c.',
  '.a@b.c',
  'a..b@c.d',
  'a@b.c\n',
  'a\0@b.c',
  '<a@b.c>',
  `${'a'.repeat(65)}@b.c`,
  `a@${'b.'.repeat(130)}c`,
  'a@b_c.d',
])('the e-mail address %j is rejected', (text) => expect(normalizeEmail(text)).toBeNull())

test('normalizing an e-mail address twice gives the same result as once', () => {
  fc.assert(
    fc.property(fc.emailAddress(), (email) => {
      const once = normalizeEmail(email)
      if (once !== null) expect(normalizeEmail(once)).toBe(once)
    }),
  )
})

test('a script has at most 64 KiB of UTF-8 and no NUL, and may begin with anything', () => {
  expect(scriptProblem('#!/bin/sh\necho hello\n')).toBeNull()
  expect(scriptProblem('echo hello')).toBeNull()
  expect(scriptProblem('')).toBeNull()
  expect(scriptProblem('#!/bin/sh\0')).toMatch(/NUL/)
  expect(scriptProblem(`#!${'x'.repeat(65_534)}`)).toBeNull()
  expect(scriptProblem(`#!${'x'.repeat(65_535)}`)).toMatch(/64 KiB/)
  expect(scriptProblem(`#!${'é'.repeat(32_768)}`)).toMatch(/64 KiB/)
})
