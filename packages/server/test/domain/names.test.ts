import { isResourceName } from '@slipway/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { normaliseEmail, startupScriptProblem } from '../../src/domain/names.ts'

describe('resource names', () => {
  it.each(['a', '0', 'Train-1_b', 'x'.repeat(63)])('accepts %s', (name) => {
    expect(isResourceName(name)).toBe(true)
  })
  it.each(['', '-a', '_a', 'x'.repeat(64), 'a b', 'a.b', 'ä', 'a\n', 'a\0', ' a'])('refuses %j', (name) => {
    expect(isResourceName(name)).toBe(false)
  })
  it('decides by its first character and its alphabet', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 63, unit: 'binary' }), (name) => {
        const isPlain = [...name].every((c, i) => /[A-Za-z0-9]/.test(c) || (i > 0 && '_-'.includes(c)))
        expect(isResourceName(name)).toBe(isPlain)
      }),
    )
  })
})

describe('e-mail addresses', () => {
  it.each([
    ['Ada@Example.COM', 'ada@example.com'],
    ["o'hara+gpu@mail.example.co", "o'hara+gpu@mail.example.co"],
    ['demo@localhost', 'demo@localhost'],
    ['jürgen@example.de', 'jürgen@example.de'],
  ])('accepts %s', (text, normal) => expect(normaliseEmail(text)).toBe(normal))

  it.each([
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
  ])('refuses %j', (text) => expect(normaliseEmail(text)).toBeNull())

  it('are the same after normalising twice', () => {
    fc.assert(
      fc.property(fc.emailAddress(), (email) => {
        const once = normaliseEmail(email)
        if (once !== null) expect(normaliseEmail(once)).toBe(once)
      }),
    )
  })
})

it('takes scripts that begin with #! and have at most 64 KiB of UTF-8', () => {
  expect(startupScriptProblem('#!/bin/sh\necho hello\n')).toBeNull()
  expect(startupScriptProblem('echo hello')).toMatch(/#!/)
  expect(startupScriptProblem('\n#!/bin/sh')).toMatch(/#!/)
  expect(startupScriptProblem('#!/bin/sh\0')).toMatch(/NUL/)
  expect(startupScriptProblem(`#!${'x'.repeat(65_534)}`)).toBeNull()
  expect(startupScriptProblem(`#!${'x'.repeat(65_535)}`)).toMatch(/64 KiB/)
  expect(startupScriptProblem(`#!${'é'.repeat(32_768)}`)).toMatch(/64 KiB/)
})
