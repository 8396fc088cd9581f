import { expect, test } from 'vitest'
import { nearWords } from '../src/text/near-words.ts'

const images = ['ubuntu24.04-nvidia:latest', 'debian12:latest']
const flags = ['--port', '--host', '--role']

test.each([
  ['debian13:latest', images, ['debian12:latest']],
  ['DEBIAN12:latest', images, ['debian12:latest']],
  ['--prot', flags, ['--port']],
  ['tpc', ['tcp', 'udp', 'icmp'], ['tcp']],
  ['ssd', ['persistent-ssd', 'shared-volume'], ['persistent-ssd']],
  ['al', ['all', 'api', 'worker'], ['all']],
])('a similar word is suggested for %s', (given, known, expected) => {
  expect(nearWords(given, known)).toEqual(expected)
})

test.each([
  ['nope', images],
  ['nope:latest', images],
  ['x', ['a', 'b']],
  ['', ['a']],
  ['PAUSE', ['START', 'STOP', 'RESET']],
  ['--colour', flags],
])('no word is suggested for %s', (given, known) => {
  expect(nearWords(given, known)).toEqual([])
})
