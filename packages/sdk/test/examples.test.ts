import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type RealServer, startRealServer } from '@slipway/testing/real-server.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { build } from 'esbuild'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const source = fileURLToPath(new URL('../src', import.meta.url))
const root = fileURLToPath(new URL('../../..', import.meta.url))
// Inside the workspace, so that imports are found as they are for a reader.
const scratch = mkdtempSync(join(root, 'packages/sdk/test/.examples-'))

/** What the examples may take for granted; everything else they must say themselves. */
const ground = `
import { ApiError, createClient, type Disk, logIn, type Vm } from '@slipway/sdk'
interface Ground { baseUrl: string; accessKey: string; project_id: string; email: string; password: string; sshPublicKey: string; log: (...words: unknown[]) => void }
void [ApiError, createClient, logIn] as unknown as [Disk, Vm]
`

interface Example {
  name: string
  code: string
}

const examples: Example[] = readdirSync(source).flatMap((file) => {
  const text = readFileSync(join(source, file), 'utf8')
  return Array.from(text.matchAll(/\* ```ts\n([\s\S]*?)\* ```/g), ([, block = ''], index) => ({
    name: `${file.replace('.ts', '')}-${index + 1}`,
    code: block.replaceAll(/^ *\* ?/gm, ''),
  }))
})

function write({ name, code }: Example): string {
  const path = join(scratch, `${name}.ts`)
  // An inner block, so that an example may make its own client.
  const body = `export default async ({ baseUrl, accessKey, project_id, email, password, sshPublicKey, log }: Ground) => {
  const client = createClient({ baseUrl, token: accessKey })
  void [client, accessKey, project_id, email, password, sshPublicKey, log]
  {
${code}  }
}
`
  writeFileSync(path, ground + body)
  return path
}

const paths = new Map(examples.map((example) => [example.name, write(example)]))
let server: RealServer
beforeAll(async () => {
  server = await startRealServer()
})
afterAll(async () => {
  rmSync(scratch, { recursive: true })
  await server?.stop()
})

test('there are examples for the client, its lists, waiting, events, errors and sessions', () => {
  expect(examples.length).toBeGreaterThanOrEqual(7)
})

test('every example compiles as strictly as the rest', () => {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root)
  const compiled = ts.createProgram([...paths.values()], { ...options, noEmit: true })
  const complaints = ts.getPreEmitDiagnostics(compiled).map((diagnostic) => ({
    file: diagnostic.file?.fileName,
    says: ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n'),
  }))
  expect(complaints).toEqual([])
}, 300_000)

describe('run against a server, in the order of the sources', () => {
  test.each(examples)('$name', async ({ name }) => {
    const outfile = join(scratch, `${name}.mjs`)
    await build({ entryPoints: [paths.get(name)!], outfile, bundle: true, platform: 'node', format: 'esm' })
    const { default: run } = await import(pathToFileURL(outfile).href)
    const lines: unknown[][] = []
    await run({
      baseUrl: server.api_url,
      accessKey: server.access_key,
      project_id: server.project_id,
      email: server.email,
      password: server.password,
      sshPublicKey: sshKey,
      log: (...words: unknown[]) => void lines.push(words),
    })
    if (name !== 'client-1') expect(lines.length).toBeGreaterThan(0)
  })
})
