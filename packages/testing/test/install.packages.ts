import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Credentials, credentialsOf } from '../src/launcher.ts'
import { postmasterPid } from '../src/postgres/postmaster.ts'
import { type Ended, type Program, startProgram } from '../src/program.ts'
import { simulatedLocation } from '../src/real-server.ts'
import { root } from '../src/root.ts'
import { sshKey } from '../src/ssh-key.ts'
import { Outside } from './support/outside.ts'

const script = (name: string) => import(pathToFileURL(join(root, 'scripts/packages', name)).href)
const { devDependencies, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

const outside = new Outside()
const folders = { sdk: '', cli: '', server: '' }
let binary: string
let server: Program
let demo: Credentials
const dataDir = () => join(folders.server, '.slipway')

beforeAll(async () => {
  await outside.open()
  const { packPackages } = await script('pack.mjs')
  const archives = new Map<string, string>(
    (await packPackages()).map(({ name, archive }: { name: string; archive: string }) => [name, archive]),
  )
  const [typescript, types] = ['typescript', '@types/node'].map((name) => `${name}@${devDependencies[name]}`)
  folders.sdk = await outside.install('sdk-user', [archives.get('@slipway/sdk')!, typescript!, types!])
  folders.cli = await outside.install('cli-user', [archives.get('slipway')!])
  folders.server = await outside.install('server-user', [archives.get('@slipway/server')!])
  const { buildBinary } = await script('binary.mjs')
  binary = join(outside.dir, 'slipway')
  copyFileSync(await buildBinary(), binary)

  const locations = [
    simulatedLocation({ name: 'us-east1-a', publicIpv4: '198.18.0.0/18', models: ['A100 40GB PCIe'] }),
    simulatedLocation({ name: 'eu-north1-a', publicIpv4: '198.18.64.0/18', models: ['A40 48GB PCIe'] }),
  ]
  writeFileSync(join(folders.server, 'slipway.toml'), locations.join(''))
  server = outside.start('npx', ['@slipway/server', '--port', '0'], { cwd: folders.server })
  await server.until(/"msg":"ready"|Slipway is ready/)
  demo = credentialsOf(dataDir())
})
afterAll(() => outside.close(dataDir()))

test('every installed dependency supports this version of Node', () => {
  expect(outside.installWarnings).not.toContain('EBADENGINE')
})

test('npx @slipway/server prints its version, and serves the API and the console', async () => {
  const printed = await outside.run('npx', ['@slipway/server', '--version'], { cwd: folders.server })
  expect(printed).toMatchObject({ code: 0, output: `${version}\n` })
  const look = `
    const answers = ['/v0.1/catalogue', '/', '/docs', '/openapi.json'].map(async (path) => {
      const answer = await fetch('${demo.api_url}' + path, { headers: { accept: 'text/html,application/json' } })
      return answer.status + ' ' + answer.headers.get('content-type').split(';')[0]
    })
    console.log(JSON.stringify(await Promise.all(answers)))`
  const { output } = await outside.run('node', ['--input-type=module', '--eval', look], { cwd: outside.dir })
  const [json, html] = ['200 application/json', '200 text/html']
  expect(JSON.parse(output)).toEqual([json, html, html, json])
})

test('a dry run of a release packs everything, lists what blocks it and publishes nothing', async () => {
  const env = { HOME: outside.home }
  const dryRun = startProgram('npm', ['run', 'release', '--', '--dry-run'], { cwd: root, env })
  const { code, output } = await dryRun.ended()
  expect(code).toBe(0)
  for (const name of ['@slipway/sdk', 'slipway', '@slipway/server'])
    expect(output).toMatch(new RegExp(`^${name} ${version}: \\d+ files`, 'm'))
  expect(output).toContain('Nothing was published')
})

test.each([
  ['the web platform', ['ES2022', 'DOM'], []],
  ['Node only', ['ES2023'], ['node']],
])('a program with the SDK compiles strictly with the types of %s', async (_, lib, types) => {
  const compilerOptions = { strict: true, module: 'nodenext', target: 'es2022', noEmit: true, lib, types }
  const source =
    "import { createClient } from '@slipway/sdk'\nexport const client = createClient({ baseUrl: '' })\n"
  writeFileSync(join(folders.sdk, 'look.ts'), source)
  const config = { compilerOptions: { ...compilerOptions, skipLibCheck: false }, files: ['look.ts'] }
  writeFileSync(join(folders.sdk, 'tsconfig.json'), JSON.stringify(config))
  expect(await outside.run('npx', ['tsc'], { cwd: folders.sdk })).toMatchObject({ code: 0, output: '' })
})

test('a first program with the SDK creates and attaches resources, handles a refusal, follows events and deletes', async () => {
  copyFileSync(join(import.meta.dirname, 'installed/first-program.ts'), join(folders.sdk, 'first.ts'))
  const compilerOptions = {
    strict: true,
    module: 'nodenext',
    target: 'es2022',
    outDir: 'built',
    types: ['node'],
  }
  writeFileSync(
    join(folders.sdk, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: { ...compilerOptions, skipLibCheck: false }, files: ['first.ts'] }),
  )
  expect(await outside.run('npx', ['tsc'], { cwd: folders.sdk })).toMatchObject({ code: 0, output: '' })
  const env = {
    SLIPWAY_API_URL: demo.api_url,
    SLIPWAY_ACCESS_KEY: demo.access_key,
    SLIPWAY_PROJECT: demo.project_id,
  }
  const { output, errors } = await outside.run('node', ['built/first.js'], { cwd: folders.sdk, env })
  expect(errors).toBe('')
  expect(JSON.parse(output)).toEqual({
    state: 'STATE_RUNNING',
    code: 'out_of_stock',
    fitsIn: ['eu-north1-a'],
    isJoined: true,
    events: ['vm.creating', 'vm.running', 'vm.deleted'],
    left: 0,
  })
})

describe.each([
  ['the package', (words: string[]) => outside.run('npx', ['slipway', ...words], { cwd: folders.cli })],
  ['the single executable', (words: string[]) => outside.run(binary, words, { cwd: outside.dir })],
])('the first five minutes with %s', (_, run: (words: string[]) => Promise<Ended>) => {
  const done = async (...words: string[]) => {
    const { code, output, errors } = await run(words)
    expect({ words, code, errors: code === 0 ? '' : errors }).toEqual({ words, code: 0, errors: '' })
    return output
  }
  const json = async (...words: string[]) => JSON.parse(await done(...words, '-o', 'json'))

  test('prints its version, its help and a completion script', async () => {
    expect(await done('--version')).toBe(`${version}\n`)
    expect(await done('--help')).toContain('vm create')
    expect(await done('completion', 'bash')).toContain('slipway')
  })

  test('logs in, creates a VM with a disk, and deletes both', async () => {
    const key = join(outside.dir, 'key.pub')
    writeFileSync(key, `${sshKey}\n`)
    await done('login', '--credentials', join(dataDir(), 'credentials.json'))
    expect((await json('offers', '--available')).length).toBeGreaterThan(0)
    await done('vm', 'create', 'first', '--type', 'a100.1x', '--location', 'any', '--ssh-key', key)
    expect(await json('vm', 'list')).toMatchObject([{ name: 'first', state: 'STATE_RUNNING' }])
    await done('disk', 'create', 'data', '--size', '10GiB', '--location', 'us-east1-a')
    await done('disk', 'attach', 'data', 'first')
    expect(await done('events', '--limit', '5')).toContain('first')
    await done('vm', 'delete', 'first', '--yes')
    await done('disk', 'delete', 'data', '--yes')
    expect(await json('vm', 'list')).toEqual([])
    expect((await run(['vm', 'show', 'first'])).code).toBe(3)
  })
})

test('Ctrl-C stops the server and its PostgreSQL', async () => {
  expect(postmasterPid(dataDir())).toBeDefined()
  await server.endGroup('SIGINT')
  expect(postmasterPid(dataDir())).toBeUndefined()
})
