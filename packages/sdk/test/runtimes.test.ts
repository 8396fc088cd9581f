import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type InProcessServer, startInProcessServer } from '@slipway/testing/in-process-server.ts'
import { startProgram } from '@slipway/testing/program.ts'
import { root } from '@slipway/testing/root.ts'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'

let server: InProcessServer
let scratch: string
let bundle: string

/**
 * The program that each runtime executes: read the caller, create a disk, wait for it, read an event, handle an error,
 * verify a signature.
 */
const program = `
import { createClient, isApiError, signWebhook, verifyWebhook } from '@slipway/sdk'
export async function smoke({ baseUrl, token, project_id, name }) {
  const client = createClient({ baseUrl, token })
  const project = client.project(project_id)
  const { operation } = await project.diskCreate({ name, size: '1GiB', location: 'us-east1-a' })
  const { result: disk } = await project.wait(operation)
  let event
  for await (const each of project.events({ after: 0 })) { event = each.type; break }
  const code = await project.diskGet({ disk_id: operation.operation_id }).catch((error) => isApiError(error) && error.code)
  await project.wait((await project.diskDelete({ disk_id: disk.id })).operation)
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const body = JSON.stringify({ type: 'vm.running', timestamp: '', data: {} })
  const signed = await signWebhook(secret, { id: 'msg_1', sentAt: new Date(), body })
  const { type } = await verifyWebhook(secret, signed, body)
  return JSON.stringify({ disk: disk.name, hasEvent: typeof event === 'string', code, type })
}
`
const expected = (name: string) => ({ disk: name, hasEvent: true, code: 'not_found', type: 'vm.running' })
const inputOf = (name: string) => ({
  baseUrl: server.api_url,
  token: server.access_key,
  project_id: server.project_id,
  name,
})

beforeAll(async () => {
  mkdirSync(join(root, '.cache'), { recursive: true })
  scratch = mkdtempSync(join(root, '.cache/sdk-runtimes-'))
  bundle = join(scratch, 'smoke.js')
  const stdin = { contents: program, resolveDir: join(root, 'packages/sdk'), loader: 'ts' as const }
  await build({ stdin, outfile: bundle, bundle: true, platform: 'browser', format: 'esm' })
  server = await startInProcessServer()
})
afterAll(async () => {
  rmSync(scratch, { recursive: true })
  await server?.close()
})

/**
 * Returns the runtime's executable from its npm package for this platform. The wrapper in the package would download a
 * missing executable.
 */
function programOf(scope: string, path: string): string | undefined {
  const folder = join(root, 'node_modules', scope)
  const found = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name, path)) : []
  return found.find((file) => existsSync(file))
}

async function runIn(command: string, args: string[], name: string) {
  const code = `const { smoke } = await import(${JSON.stringify(`file://${bundle}`)}); console.log(await smoke(${JSON.stringify(inputOf(name))}))`
  const { output, errors } = await startProgram(command, [...args, code], { cwd: scratch }).ended()
  expect(errors).toBe('')
  return JSON.parse(output)
}

// Bun's install script moves the executable from the first path to the second. npm may be configured not to run it.
const bun = programOf('@oven', 'bin/bun') ?? programOf('bun', 'bun.exe')
const deno = programOf('@deno', 'deno')
const isMissing = (file: string | undefined, name: string) => {
  if (file) return false
  if (process.env.CI === 'true') throw new Error(`run npm install: ${name} is missing`)
  console.error(`skipped: run npm install to have ${name}`)
  return true
}

test.skipIf(isMissing(bun, 'bun'))('the client works in Bun', async () => {
  expect(await runIn(bun!, ['-e'], 'in-bun')).toEqual(expected('in-bun'))
})

test.skipIf(isMissing(deno, 'deno'))('the client works in Deno', async () => {
  expect(await runIn(deno!, ['eval', '--no-check'], 'in-deno')).toEqual(expected('in-deno'))
})

test('the client works in a browser, on a page of the service', async () => {
  const browser = await chromium.launch({
    executablePath: process.env.SLIPWAY_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  })
  try {
    const page = await browser.newPage()
    await page.route('**/smoke.html', (route) =>
      route.fulfill({ contentType: 'text/html', body: '<p>smoke</p>' }),
    )
    await page.route('**/smoke.js', (route) =>
      route.fulfill({ contentType: 'text/javascript', path: bundle }),
    )
    await page.goto(`${server.api_url}/smoke.html`)
    const input = JSON.stringify(inputOf('in-a-browser'))
    const result = await page.evaluate<string>(`import('/smoke.js').then(({ smoke }) => smoke(${input}))`)
    expect(JSON.parse(result)).toEqual(expected('in-a-browser'))
  } finally {
    await browser.close()
  }
})
