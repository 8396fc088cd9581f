import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startProgram } from '../src/program.ts'
import { type RealServer, startRealServer } from '../src/real-server.ts'
import { root } from '../src/root.ts'
import { sshKey } from '../src/ssh-key.ts'

const folder = mkdtempSync(join(tmpdir(), 'slipway-python-user-'))
const python = join(folder, 'venv/bin/python')
let server: RealServer

beforeAll(async () => {
  const { buildPython } = await import(pathToFileURL(join(root, 'scripts/packages/python.mjs')).href)
  const run = (command: string, ...args: string[]) => {
    const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
    expect(status, stderr).toBe(0)
  }
  run('python3', '-m', 'venv', join(folder, 'venv'))
  run(python, '-m', 'pip', 'install', '--quiet', buildPython())
  writeFileSync(join(folder, 'id_ed25519.pub'), sshKey)
  server = await startRealServer()
})
afterAll(async () => {
  await server?.close()
  rmSync(folder, { recursive: true, force: true })
})

function runPython(script: string) {
  const env = {
    SLIPWAY_API_URL: server.url,
    SLIPWAY_PROJECT_ID: server.project_id,
    SLIPWAY_ACCESS_KEY: server.access_key,
  }
  return startProgram(python, ['-c', script], { cwd: folder, env }).ended()
}

test('the program in the README of the Python client creates a VM, waits for it and deletes it', async () => {
  const page = readFileSync(join(root, 'clients/python/README.md'), 'utf8')
  const [, script = ''] = /```python\n([\s\S]*?)```/.exec(page) ?? []
  const { code, output, errors } = await runPython(script)
  expect(code, errors).toBe(0)
  expect(output).toMatch(/^ubuntu@[\d.]+\n$/)
  expect(await server.sql('SELECT id FROM vms WHERE deleted_at IS NULL')).toEqual([])
})

const preamble = `
import os, httpx
from slipway_client.api.disks import disk_create, disk_list
from slipway_client.models import DiskCreate
from slipway_client.slipway import SlipwayError, checked, connect, wait
project = os.environ["SLIPWAY_PROJECT_ID"]
url, key = os.environ["SLIPWAY_API_URL"], os.environ["SLIPWAY_ACCESS_KEY"]
client = connect(url, key)
body = DiskCreate.from_dict({"name": "data", "size": "10GiB", "location": "us-east1-a"})
`

test('a call that is sent again with its key has the same operation, and each write has a key of its own', async () => {
  const { output, errors } = await runPython(`${preamble}
first = checked(disk_create.sync(project, client=client, body=body, idempotency_key="once"))
again = checked(disk_create.sync(project, client=client, body=body, idempotency_key="once"))
print(first.operation.operation_id == again.operation.operation_id)
wait(client, project, first)
keys = []
class Lost(httpx.HTTPTransport):
    def handle_request(self, request):
        keys.append(request.headers.get("Idempotency-Key"))
        return super().handle_request(request)
recorded = connect(url, key, transport=Lost())
disk_list.sync(project, client=recorded)
for _ in range(2):
    disk_create.sync(project, client=recorded, body=body)
print(keys[0], len(set(keys[1:])))
`)
  expect(output, errors).toBe('True\nNone 2\n')
})

test('the Python client raises exceptions with the error code', async () => {
  const { output, errors } = await runPython(`${preamble}
for call in (lambda: disk_create.sync(project, client=client, body=body), lambda: disk_list.sync(project, client=connect(url, "slp_wrong"))):
    try:
        wait(client, project, call())
    except SlipwayError as error:
        print(error.code)
`)
  expect(output, errors).toBe('already_exists\nunauthenticated\n')
})
