import { expect, test } from 'vitest'
import { goldenFile, transcript } from './support/golden.ts'
import { cliWithServer } from './support/with-server.ts'

const { publicKey, slipway } = cliWithServer()
const json = async (...words: string[]) => {
  const run = await slipway(...words, '-o', 'json')
  expect(run).toMatchObject({ code: 0 })
  return JSON.parse(run.stdout)
}

async function golden(name: string, ...lines: string[][]) {
  const texts: string[] = []
  // --quiet omits the steps, whose names depend on the engine.
  for (const words of lines) texts.push(transcript(words, await slipway(...words, '--quiet')))
  await expect(`${texts.join('\n\n')}\n`).toMatchFileSnapshot(goldenFile(name))
}

test('a disk is restored from a snapshot, and a VM is created from a custom image of another VM', async () => {
  await json('disk', 'create', 'corpus', '--size', '16GiB', '--location', 'us-east1-a')
  await json('snapshot', 'create', 'corpus-monday', '--disk', 'corpus', '--label', 'team=ml')
  const shape = ['--type', 'a40.1x', '--location', 'eu-north1-a', '--ssh-key', publicKey]
  await json('vm', 'create', 'base', ...shape)
  await json('vm', 'stop', 'base')
  await json('custom-image', 'create', 'trainer:v1', '--vm', 'base', '--tag', 'cuda')
  await golden(
    'copies.txt',
    ['snapshot', 'list'],
    ['snapshot', 'show', 'corpus-monday'],
    ['snapshot', 'restore', 'corpus-monday', 'corpus-2', '--size', '32GiB'],
    ['disk', 'create', 'corpus-3', '--snapshot', 'corpus-monday'],
    ['disk', 'create', 'corpus-4', '--size', '1GiB'],
    ['custom-image', 'list', '--prefix', 'trainer'],
    ['custom-image', 'show', 'trainer:v1'],
    ['custom-image', 'create', 'trainer:v2'],
  )
  const vm = await json('vm', 'create', 'train', ...shape, '--custom-image', 'trainer')
  expect(vm).toMatchObject({ image: 'trainer:v1', state: 'STATE_RUNNING' })
  expect(await slipway('vm', 'delete', 'train', 'base', '--yes')).toMatchObject({ code: 0 })
  expect(await slipway('custom-image', 'delete', 'trainer:v1', '--yes')).toMatchObject({ code: 0 })
  expect(await slipway('snapshot', 'delete', 'corpus-monday', '--yes')).toMatchObject({ code: 0 })
  expect(await slipway('disk', 'delete', 'corpus', 'corpus-2', 'corpus-3', '--yes')).toMatchObject({
    code: 0,
  })
})
