import fc from 'fast-check'
import { expect, test } from 'vitest'
import { diskSizeProblem, parseDiskSize, sizeGb, sizeTib } from '../../src/domain/sizes.ts'

test('parseDiskSize reads GiB and TiB', () => {
  expect(parseDiskSize('1GiB')).toEqual({ gib: 1 })
  expect(parseDiskSize('3TiB')).toEqual({ gib: 3072 })
})

test.each([
  '',
  '0GiB',
  '01GiB',
  '1',
  'GiB',
  '1 GiB',
  '1gib',
  '1GB',
  '1.5TiB',
  '-1GiB',
  '1e3GiB',
  '1GiB\n',
  `${'9'.repeat(20)}GiB`,
])('parseDiskSize rejects %j', (text) => {
  expect(parseDiskSize(text)).toBeNull()
  expect(diskSizeProblem('persistent-ssd', text)).toMatch(/GiB or TiB/)
})

test.each([
  ['persistent-ssd', '1GiB', true],
  ['persistent-ssd', '10240GiB', true],
  ['persistent-ssd', '10TiB', true],
  ['persistent-ssd', '10241GiB', false],
  ['persistent-ssd', '11TiB', false],
  ['shared-volume', '1TiB', true],
  ['shared-volume', '1024GiB', true],
  ['shared-volume', '1000TiB', true],
  ['shared-volume', '1024000GiB', true],
  ['shared-volume', '1023GiB', false],
  ['shared-volume', '1025GiB', false],
  ['shared-volume', '1001TiB', false],
] as const)('a disk of type %s and size %s is valid: %s', (type, text, isFine) => {
  expect(diskSizeProblem(type, text) === null).toBe(isFine)
})

test('a disk size is treated the same in either unit', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('persistent-ssd' as const, 'shared-volume' as const),
      fc.integer({ min: 1, max: 2000 }),
      (type, tib) => {
        expect(diskSizeProblem(type, `${tib}TiB`)).toBe(diskSizeProblem(type, `${tib * 1024}GiB`))
      },
    ),
  )
})

test('1 TiB is metered as 1024 GB and counted in quotas as 1 TiB', () => {
  expect(sizeGb(parseDiskSize('1TiB')!.gib)).toBe(1024)
  expect(sizeTib(2048)).toBe(2)
})
