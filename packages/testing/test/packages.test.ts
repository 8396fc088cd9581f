import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import ts from 'typescript'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { root } from '../src/root.ts'

interface StagedPackage {
  name: string
  directory: string
  manifest: Record<string, unknown>
}

const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
const workspace = readJson(join(root, 'package.json'))
let scratch: string
let staged: StagedPackage[]

beforeAll(async () => {
  mkdirSync(join(root, '.cache'), { recursive: true })
  scratch = mkdtempSync(join(root, '.cache/packages-'))
  const { stagePackages } = await import(pathToFileURL(join(root, 'scripts/packages/stage.mjs')).href)
  staged = await stagePackages(scratch)
})
afterAll(() => rmSync(scratch, { recursive: true }))

const filesOf = ({ directory }: StagedPackage) =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
const named = (name: string) => staged.find((each) => each.name === name)!

test('every package has a description, its licence and a README', () => {
  expect(staged.map(({ name }) => name)).toEqual(['@slipway/sdk', 'slipway', '@slipway/server'])
  for (const each of staged) {
    const { version, repository } = workspace
    expect(each.manifest).toMatchObject({ version, license: 'Apache-2.0', repository, type: 'module' })
    expect(each.manifest).toMatchObject({ description: expect.any(String), exports: expect.any(Object) })
    expect(each.manifest).not.toHaveProperty('private')
    expect(filesOf(each)).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']))
  }
})

test('no package contains tests, sources or source maps, and each contains the files that its manifest names', () => {
  for (const each of staged) {
    const files = filesOf(each)
    expect(files.filter((file) => /(^|\/)(test|src|bench)\/|\.test\.|\.map$|^\.|\/\./.test(file))).toEqual([])
    expect(files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))).toEqual([])
    const { bin = {}, types, exports } = each.manifest as Record<string, Record<string, unknown>>
    const paths = JSON.stringify([bin, types ?? '', exports]).match(/[^"]+\.(?:js|json|d\.ts)(?=")/g) ?? []
    const wanted = paths.map((path) => path.replace('./', '')).filter((path) => path !== 'package.json')
    expect(wanted.length).toBeGreaterThan(0)
    expect(files).toEqual(expect.arrayContaining(wanted))
  }
})

test('the server package contains the files that operators copy', () => {
  expect(filesOf(named('@slipway/server'))).toEqual(
    expect.arrayContaining([
      ...['slipway.example.toml', 'slipway-agent.service', 'slipway.service'],
      ...['slipway-backup.service', 'slipway-backup.timer'],
    ]),
  )
})

test('the client and the CLI have no dependencies on other packages', () => {
  for (const name of ['@slipway/sdk', 'slipway']) expect(named(name).manifest.dependencies).toBeUndefined()
  const sdk = named('@slipway/sdk').directory
  const importedBy = (files: string[]) =>
    files
      .map((file) => readFileSync(join(sdk, 'dist', file), 'utf8'))
      .flatMap((text) => Array.from(text.matchAll(/\bfrom\s*['"]([^'"]+)/g), ([, path]) => path!))
      .filter((path) => !/^\.\/[\w-]+\.js$/.test(path))
  const files = readdirSync(join(sdk, 'dist'))
  expect(importedBy(files.filter((file) => file !== 'testing.js'))).toEqual([])
  // The part for tests needs Node, and no other part loads it.
  expect(importedBy(['testing.js']).filter((path) => !path.startsWith('node:'))).toEqual([])
  expect(readFileSync(join(sdk, 'dist/index.js'), 'utf8')).not.toContain('testing.js')
  const cli = readFileSync(join(named('slipway').directory, 'dist/slipway.js'), 'utf8')
  const outside = Array.from(cli.matchAll(/^import .*?from\s*['"]([^'"]+)/gm), ([, path]) => path!)
  expect(outside.filter((path) => !path.startsWith('node:'))).toEqual([])
})

test('the server package contains its programs, console and migrations, and depends on every package that it imports', () => {
  const { directory, manifest } = named('@slipway/server')
  const files = filesOf(named('@slipway/server'))
  expect(files).toEqual(expect.arrayContaining(['dist/qemu-forwarder.js', 'dist/console/index.html']))
  expect(files.filter((file) => file.startsWith('migrations/'))).toEqual(
    readdirSync(join(root, 'packages/server/migrations')).map((file) => `migrations/${file}`),
  )
  const programs = files.filter((file) => /^dist\/(chunks\/)?[^/]+\.js$/.test(file))
  const bundles = programs.map((file) => readFileSync(join(directory, file), 'utf8'))
  const imported = bundles.flatMap((text) =>
    Array.from(text.matchAll(/^import .*?from\s*['"]([^'"]+)/gm), ([, path]) => path!),
  )
  const packages = imported
    .filter((path) => !/^(node:|\.)/.test(path))
    .map((path) => /^(@[^/]+\/)?[^/]+/.exec(path)![0])
  expect(packages).toContain('pg')
  expect(Object.keys(manifest.dependencies as object)).toEqual(expect.arrayContaining([...new Set(packages)]))
})

test('all packages have one version, which is in the change log', () => {
  const { version, workspaces } = workspace
  const lock = readJson(join(root, 'package-lock.json')).packages
  for (const path of workspaces as string[]) {
    for (const manifest of [readJson(join(root, path, 'package.json')), lock[path]]) {
      expect({ path, version: manifest.version }).toEqual({ path, version })
      const dependencies = { ...manifest.dependencies, ...manifest.devDependencies }
      const ours = Object.keys(dependencies).filter((name) => name.startsWith('@slipway/'))
      expect(ours.filter((name) => dependencies[name] !== version)).toEqual([])
    }
  }
  expect(readJson(join(root, 'openapi.json')).info.version).toBe(version)
  expect(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')).toMatch(new RegExp(`^## ${version}$`, 'm'))
})

test('the client types of every route and lever match the contract', () => {
  const types = {
    Route: ['RouteParams', 'RouteQuery', 'RouteBody', 'RouteResponse'],
    DevRoute: ['DevQuery', 'DevBody', 'DevResponse'],
  }
  const lines = Object.entries(types).flatMap(([route, names]) =>
    names.map(
      (name) =>
        `export const ${name}: { [Id in Ours.${route}Id]: Same<Ours.${name}<Id>, Folded.${name}<Id>> } = {} as { [Id in Ours.${route}Id]: true }`,
    ),
  )
  const text = `import type * as Ours from '@slipway/contract'
import type * as Folded from './sdk/dist/contract.js'
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : { narrower: B }) : { wider: B }
export const ids: Same<Ours.RouteId, Folded.RouteId> = true
export const levers: Same<Ours.DevRouteId, Folded.DevRouteId> = true
${lines.join('\n')}
`
  const file = join(scratch, 'same.ts')
  writeFileSync(file, text)
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root)
  const program = ts.createProgram([file], { ...options, noEmit: true })
  const errors = ts.getPreEmitDiagnostics(program, program.getSourceFile(file))
  expect(errors.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))).toEqual([])
}, 120_000)
