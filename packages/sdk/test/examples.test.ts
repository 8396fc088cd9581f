import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type InProcessServer, startInProcessServer } from '@slipway/testing/in-process-server.ts'
import { root } from '@slipway/testing/root.ts'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { build } from 'esbuild'
import ts from 'typescript'
import { afterAll, beforeAll, expect, test } from 'vitest'

const source = join(root, 'packages/sdk/src')
let scratch: string
let server: InProcessServer

/** Declares the names that the examples may use without defining them. */
const preamble = `
import { ApiError, createClient, logIn, signWebhook, verifyWebhook } from '@slipway/sdk'
import { startService } from '@slipway/sdk/testing'
interface ExampleInput { baseUrl: string; accessKey: string; project_id: string; email: string; password: string; sshPublicKey: string; log: (...words: unknown[]) => void }
void [ApiError, createClient, logIn, signWebhook, verifyWebhook, startService]
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

for (const page of ['packages/sdk/README.md', 'README.md']) {
  const text = readFileSync(join(root, page), 'utf8')
  for (const [index, [, code = '']] of Array.from(text.matchAll(/```ts\n([\s\S]*?)```/g)).entries()) {
    examples.push({ name: `${page.replaceAll(/[/.]/g, '-')}-${index + 1}`, code })
  }
}

const pathOf = (name: string) => join(scratch, `${name}.ts`)

function write({ name, code }: Example): void {
  // An inner block, so that an example may create its own client.
  const body = `export default async ({ baseUrl, accessKey, project_id, email, password, sshPublicKey, log }: ExampleInput) => {
  const client = createClient({ baseUrl, token: accessKey })
  void [client, accessKey, project_id, email, password, sshPublicKey, log]
  {
${code}  }
}
`
  writeFileSync(pathOf(name), preamble + body)
}

beforeAll(async () => {
  // Inside the workspace, so that imports are resolved as for a reader.
  mkdirSync(join(root, '.cache'), { recursive: true })
  scratch = mkdtempSync(join(root, '.cache/sdk-examples-'))
  for (const example of examples) write(example)
  server = await startInProcessServer()
})
afterAll(async () => {
  rmSync(scratch, { recursive: true })
  await server?.close()
})

test('the examples in the sources and pages are found', () => {
  expect(examples.length).toBeGreaterThanOrEqual(7)
})

test('every example compiles with the compiler options of the project', () => {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root)
  const paths = examples.map(({ name }) => pathOf(name))
  const compiled = ts.createProgram(paths, { ...options, noEmit: true })
  // Checks only the examples; the files they import are checked with the rest of the sources.
  const diagnostics = paths.flatMap((path) =>
    ts.getPreEmitDiagnostics(compiled, compiled.getSourceFile(path)),
  )
  const problems = diagnostics.map((diagnostic) => ({
    file: diagnostic.file?.fileName,
    message: ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n'),
  }))
  expect(problems).toEqual([])
}, 300_000)

test.each(examples)('example $name runs against a server', async ({ name }) => {
  const outfile = join(scratch, `${name}.mjs`)
  await build({ entryPoints: [pathOf(name)], outfile, bundle: true, platform: 'node', format: 'esm' })
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
  if (name !== 'client-core-1') expect(lines.length).toBeGreaterThan(0)
})
