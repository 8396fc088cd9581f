import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const server = 'packages/server/src/'

interface Import {
  from: string
  /** A file of ours from the root, or the name of a package. */
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

const packages = ['contract', 'server', 'sdk', 'cli', 'console']
const sources = packages.flatMap((name) => {
  try {
    return sourcesOf(`packages/${name}/src`)
  } catch {
    return []
  }
})
const imports = sources.flatMap(importsOf)

/** Rules, tables and statements; then what stands on all of them, from the ground up. */
const ground = ['@slipway/contract', `${server}domain/`, `${server}config/`, `${server}package-root.ts`]
const store = [...ground, `${server}store/`]
const port = `${server}engines/engine.ts`
const services = [...store, port, `${server}services.ts`]
const runner = [...services, `${server}views/`, `${server}runner/`]
const operations = [...runner, `${server}operations/`]

/** What each part may use besides itself and npm packages; the longest prefix that fits a file counts. */
const mayUse: Record<string, string[]> = {
  'packages/contract/': [],
  [`${server}package-root.ts`]: [],
  [`${server}domain/`]: ['@slipway/contract'],
  [`${server}config/`]: ['@slipway/contract', `${server}domain/`],
  [`${server}store/`]: ground,
  [`${server}views/`]: store,
  [port]: ['@slipway/contract', `${server}domain/`],
  [`${server}services.ts`]: [...store, port],
  [`${server}runner/`]: [...services, `${server}domain/`],
  [`${server}operations/`]: runner,
  [`${server}reconcile/`]: operations,
  [`${server}billing/`]: operations,
  [`${server}webhooks/`]: operations,
  [`${server}networks/`]: operations,
  [`${server}accounts/`]: operations,
  [`${server}setup/`]: [...operations, `${server}accounts/`],
  // An engine knows the port alone; the simulated one keeps its state in the same database.
  [`${server}engines/`]: [...ground, port],
  [`${server}engines/simulated/`]: [
    ...ground,
    port,
    `${server}store/simulated/`,
    `${server}store/database.ts`,
  ],
  [`${server}engines/engines.ts`]: [...services, `${server}engines/`],
  [`${server}http/`]: [
    ...operations,
    ...['reconcile', 'billing', 'webhooks', 'networks', 'accounts', 'setup'].map(
      (room) => `${server}${room}/`,
    ),
  ],
  [`${server}server.ts`]: [server],
  [`${server}main.ts`]: [server],
  [`${server}images-command.ts`]: [server],
  'packages/sdk/': ['@slipway/contract'],
  'packages/cli/': ['@slipway/contract', '@slipway/sdk'],
  'packages/console/': ['@slipway/contract', '@slipway/sdk'],
}

const partOf = (file: string) =>
  Object.keys(mayUse)
    .filter((prefix) => file.startsWith(prefix))
    .toSorted((a, b) => b.length - a.length)[0]

const isOurs = (to: string) => to.startsWith('packages/') || to.startsWith('@slipway/')

describe('the layers', () => {
  it('cover every source file', () => {
    expect(sources.length).toBeGreaterThan(100)
    expect(imports.length).toBeGreaterThan(500)
    expect(sources.filter((file) => !partOf(file))).toEqual([])
  })

  it('build on those below them and on nothing else', () => {
    const wrong = imports.filter(({ from, to }) => {
      const part = partOf(from)
      if (!isOurs(to) || !part) return false
      return ![part, ...mayUse[part]!].some((prefix) => to.startsWith(prefix))
    })
    expect(wrong).toEqual([])
  })

  it('reach another package by its name alone', () => {
    const packageOf = (path: string) => path.split('/')[1]
    const wrong = imports.filter(
      ({ from, to }) => to.startsWith('packages/') && packageOf(from) !== packageOf(to),
    )
    expect(wrong).toEqual([])
  })
})

const contentOf = (file: string) =>
  readFileSync(join(root, file), 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*$/gm, '')

describe('what is absent', () => {
  const ofServer = sources.filter((file) => file.startsWith(server))
  const outsideStore = ofServer.filter((file) => !file.startsWith(`${server}store/`))

  it('SQL, outside of the store', () => {
    const sql =
      /\bstatement[<(]|\b(client|pool|tx|db|database)\.query\(|\b(SELECT|INSERT INTO|DELETE FROM|UPDATE \w+ SET)\s/
    expect(outsideStore.filter((file) => sql.test(contentOf(file)))).toEqual([])
    expect(imports.filter(({ from, to }) => to === 'pg' && !from.startsWith(`${server}store/`))).toEqual([])
  })

  it('input, output and clocks, in the domain', () => {
    const isDomain = (file: string) => file.startsWith(`${server}domain/`)
    const outside = /^(pg|fastify|undici|node:(fs|http|https|child_process|os|dgram|tls|timers).*)$/
    expect(imports.filter(({ from, to }) => isDomain(from) && outside.test(to))).toEqual([])
    // node:net also knows the shapes of addresses, which opens nothing.
    const connection = /\bcreateServer\(|\bcreateConnection\(|\bconnect\(|\bnew Socket\(/
    expect(ofServer.filter((file) => isDomain(file) && connection.test(contentOf(file)))).toEqual([])
    const clock = /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bsetTimeout\(|\bsetInterval\(/
    expect(ofServer.filter((file) => isDomain(file) && clock.test(contentOf(file)))).toEqual([])
  })

  it('HTTP, outside of the edge', () => {
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

  it('words of SQL errors or Node’s own errors, in the messages of failures', () => {
    const careless = /new Failure\([^)]*(error|cause)\.(message|stack)/
    expect(ofServer.filter((file) => careless.test(contentOf(file)))).toEqual([])
  })
})
