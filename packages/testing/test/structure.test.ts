import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const server = 'packages/server/src/'

interface Import {
  from: string
  /** A source file, relative to the root, or the name of a package. */
  to: string
  isTypeOnly: boolean
}

function sourcesOf(directory: string): string[] {
  return readdirSync(join(root, directory), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ts|tsx)$/.test(name) && !/(^|\/)(node_modules|dist)\//.test(name))
    .map((name) => join(directory, name))
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(root, file), 'utf8')
  const found = text.matchAll(
    /^(?:import|export)\s+(type\s)?(?:[^'"`;]*?\sfrom\s+)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/gm,
  )
  return [...found].map(([, type, statically, dynamically]) => {
    const name = (statically ?? dynamically)!
    const to = name.startsWith('.') ? relative(root, join(root, dirname(file), name)) : name
    return { from: file, to, isTypeOnly: type !== undefined }
  })
}

const packages = ['contract', 'server', 'sdk', 'cli', 'console', 'terraform', 'testing']
const sources = packages.flatMap((name) => sourcesOf(`packages/${name}/src`))
const suites = packages.flatMap((name) =>
  ['test', 'bench']
    .map((folder) => `packages/${name}/${folder}`)
    .filter((path) => existsSync(join(root, path))),
)
const imports = sources.flatMap(importsOf)

/** The layers of the server from the bottom up: each list contains the parts that the next layer may use. */
const ground = ['@slipway/contract', `${server}domain/`, `${server}config/`, `${server}package-root.ts`]
const postgres = [...ground, `${server}postgres/`]
const store = [...postgres, `${server}store/`]
const engineInterface = `${server}engines/engine.ts`
const services = [...store, engineInterface, `${server}services.ts`]
const runner = [...services, `${server}views/`, `${server}runner/`]
const operations = [...runner, `${server}operations/`]

/** The parts that each part may use besides itself and npm packages. The longest matching prefix of a file counts. */
const mayUse: Record<string, string[]> = {
  'packages/contract/': [],
  [`${server}package-root.ts`]: [],
  [`${server}domain/`]: ['@slipway/contract'],
  [`${server}config/`]: ['@slipway/contract', `${server}domain/`],
  [`${server}postgres/`]: ground,
  [`${server}store/`]: postgres,
  [`${server}views/`]: store,
  [engineInterface]: ['@slipway/contract', `${server}domain/`],
  [`${server}services.ts`]: [...store, engineInterface],
  [`${server}runner/`]: [...services, `${server}domain/`],
  [`${server}operations/`]: runner,
  [`${server}reconcile/`]: operations,
  [`${server}billing/`]: operations,
  [`${server}webhooks/`]: operations,
  [`${server}networks/`]: operations,
  [`${server}fleet/`]: operations,
  [`${server}mail/`]: operations,
  [`${server}accounts/`]: [...operations, `${server}mail/`],
  [`${server}setup/`]: [...operations, `${server}accounts/`, `${server}mail/`],
  // An engine uses only the engine interface; the simulated engine also keeps its state in the database.
  [`${server}engines/`]: [...ground, engineInterface],
  [`${server}engines/simulated/`]: [...postgres, engineInterface, `${server}store/simulated/`],
  [`${server}engines/engines.ts`]: [...services, `${server}engines/`],
  [`${server}http/`]: [
    ...operations,
    ...['reconcile', 'billing', 'webhooks', 'networks', 'fleet', 'accounts', 'mail', 'setup'].map(
      (folder) => `${server}${folder}/`,
    ),
    `${server}log.ts`,
  ],
  // The levers of a local service affect every part.
  [`${server}dev/`]: ['@slipway/contract', server],
  [`${server}log.ts`]: [`${server}config/`],
  [`${server}server.ts`]: [server],
  [`${server}reload-locations.ts`]: [server],
  // The doctor checks everything that a service needs.
  [`${server}doctor/`]: [server],
  [`${server}startup.ts`]: [server],
  [`${server}main.ts`]: [server],
  [`${server}command-setup.ts`]: [`${server}config/`, `${server}postgres/`],
  [`${server}backup-command.ts`]: [server],
  [`${server}build-image-command.ts`]: [`${server}config/`, `${server}engines/qemu/`],
  [`${server}doctor-command.ts`]: [server],
  [`${server}images-command.ts`]: [server],
  [`${server}incus-command.ts`]: [server],
  [`${server}secrets-command.ts`]: [server],
  'packages/sdk/': ['@slipway/contract'],
  ...layers('packages/cli/src/', [
    'version.ts',
    'errors/',
    'io.ts',
    'output/',
    'core/',
    'commands/',
    'program.ts',
    'reference.ts',
    'main.ts',
  ]),
  ...layers('packages/console/src/', ['lib/', 'api/', 'ui/', 'features/', 'pages/', 'app/', 'main.tsx']),
  ...layers('packages/terraform/src/', [
    'values/',
    'wire/',
    'schema/',
    'engine/',
    'resources/',
    'provider.ts',
    'reference.ts',
    'main.ts',
  ]),
  'packages/testing/': ['@slipway/'],
}

/** Each part of a client builds on those before it. */
function layers(source: string, parts: string[]): Record<string, string[]> {
  const below = (part: string) => parts.slice(0, parts.indexOf(part)).map((each) => `${source}${each}`)
  return Object.fromEntries(
    parts.map((part) => [`${source}${part}`, ['@slipway/contract', '@slipway/sdk', ...below(part)]]),
  )
}

const partOf = (file: string) =>
  Object.keys(mayUse)
    .filter((prefix) => file.startsWith(prefix))
    .toSorted((a, b) => b.length - a.length)[0]

const isOurs = (to: string) => /^packages\/.*\.tsx?$/.test(to) || to.startsWith('@slipway/')

test('every source file belongs to a part', () => {
  expect(sources.length).toBeGreaterThan(400)
  expect(imports.length).toBeGreaterThan(1500)
  expect(sources.filter((file) => !partOf(file))).toEqual([])
})

test('a part imports only the parts below it', () => {
  const wrong = imports.filter(({ from, to }) => {
    const part = partOf(from)
    if (!isOurs(to) || !part) return false
    return ![part, ...mayUse[part]!].some((prefix) => to.startsWith(prefix))
  })
  expect(wrong).toEqual([])
})

test('no package has circular imports, including type and dynamic imports', () => {
  const next = new Map<string, string[]>()
  for (const { from, to } of imports) next.set(from, [...(next.get(from) ?? []), to])
  const finished = new Set<string>()
  const cycles: string[] = []
  const visit = (file: string, path: string[]): void => {
    if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (finished.has(file) || path.includes(file)) return
    for (const each of next.get(file) ?? []) visit(each, [...path, file])
    finished.add(file)
  }
  for (const file of sources) visit(file, [])
  expect(cycles).toEqual([])
})

test('no folder has more than 25 files, and no folder is next to a file of the same name', () => {
  const files = [...sources, ...suites.flatMap(sourcesOf)]
  const count = new Map<string, number>()
  for (const file of files) count.set(dirname(file), (count.get(dirname(file)) ?? 0) + 1)
  expect([...count].filter(([, number]) => number > 25)).toEqual([])
  expect(files.filter((file) => count.has(file.replace(/\.tsx?$/, '')))).toEqual([])
  // All files of the store are in folders, one for each family of tables.
  expect(count.get(`${server}store`)).toBeUndefined()
})

test('a package imports another only by its name, also in tests', () => {
  const packageOf = (path: string) => path.split('/')[1]
  const wrong = [...imports, ...suites.flatMap(sourcesOf).flatMap(importsOf)].filter(
    ({ from, to }) => to.startsWith('packages/') && packageOf(from) !== packageOf(to),
  )
  expect(wrong).toEqual([])
})

const contentOf = (file: string) =>
  readFileSync(join(root, file), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*$/gm, '')

const ofServer = sources.filter((file) => file.startsWith(server))
const outsideStore = ofServer.filter((file) => !/^(postgres|store)\//.test(file.slice(server.length)))

test('there is no SQL outside of the store', () => {
  const sql =
    /\bstatement[<(]|\b(client|pool|tx|db|database)\.query\(|\b(SELECT|INSERT INTO|DELETE FROM|UPDATE \w+ SET)\s/
  expect(outsideStore.filter((file) => sql.test(contentOf(file)))).toEqual([])
  expect(imports.filter(({ from, to }) => to === 'pg' && outsideStore.includes(from))).toEqual([])
})

test('the domain has no input, output or clock', () => {
  const isDomain = (file: string) => file.startsWith(`${server}domain/`)
  const outside = /^(pg|fastify|undici|node:(fs|http|https|child_process|os|dgram|tls|timers).*)$/
  expect(imports.filter(({ from, to }) => isDomain(from) && outside.test(to))).toEqual([])
  // The domain may import node:net, which also checks the format of addresses, but not open connections.
  const connection = /\bcreateServer\(|\bcreateConnection\(|\bconnect\(|\bnew Socket\(/
  expect(ofServer.filter((file) => isDomain(file) && connection.test(contentOf(file)))).toEqual([])
  const clock = /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bsetTimeout\(|\bsetInterval\(/
  expect(ofServer.filter((file) => isDomain(file) && clock.test(contentOf(file)))).toEqual([])
})

test('tests move the clock with levers, or with the clock of @slipway/testing', () => {
  const tests = suites.filter((path) => path.endsWith('/test')).flatMap(sourcesOf)
  const wrong = tests.filter((file) => /UPDATE[ ]clock\b/.test(contentOf(file)))
  expect(wrong).toEqual([])
})

test('a CLI command uses the streams and the environment that it is given', () => {
  const ofProcess = /\bprocess\.(stdin|stdout|stderr|env|cwd|exit|exitCode|argv)\b|\bconsole\./
  // The proxy library reads the environment of the process itself.
  const mayUseProcess = ['main.ts', 'core/fetch.ts'].map((name) => `packages/cli/src/${name}`)
  const files = sources.filter(
    (file) => file.startsWith('packages/cli/src/') && !mayUseProcess.includes(file),
  )
  expect(files.filter((file) => ofProcess.test(contentOf(file)))).toEqual([])
})

test('only the HTTP layer imports Fastify', () => {
  const mayServe = [`${server}http/`, `${server}server.ts`]
  const wrong = imports.filter(
    ({ from, to, isTypeOnly }) =>
      from.startsWith(server) &&
      /^(@?fastify)/.test(to) &&
      !isTypeOnly &&
      !mayServe.some((prefix) => from.startsWith(prefix)),
  )
  expect(wrong).toEqual([])
})

test('no failure contains the message of an SQL or Node error', () => {
  const careless = /new Failure\([^)]*(error|cause)\.(message|stack)/
  expect(ofServer.filter((file) => careless.test(contentOf(file)))).toEqual([])
})

test('every guarantee in docs/security.md names a test that exists', () => {
  const rows = readFileSync(join(root, 'docs/security.md'), 'utf8').matchAll(
    /^\| .* \| `(\S+\.(?:test|vm)\.ts)` \| (.+) \|$/gm,
  )
  const named = [...rows].map(([, file, name]) => ({ file: `packages/${file}`, name: name!.trim() }))
  expect(named.length).toBeGreaterThan(20)
  const missing = named.filter(({ file, name }) => {
    const path = join(root, file)
    return !existsSync(path) || !readFileSync(path, 'utf8').includes(`'${name}'`)
  })
  expect(missing).toEqual([])
})
