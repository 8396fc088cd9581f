import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ownerToken } from '@slipway/testing/people.ts'
import { useService } from '@slipway/testing/service.ts'
import { expect, test } from 'vitest'
import { addBystander } from '../support/bystander.ts'

/** Checks that apply to every response, regardless of the request. */
const checks = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_schema_conformance',
]

test('requests that Schemathesis generates get valid responses, without data of another tenant', async () => {
  const service = await useService((config) => {
    config.webhooks.allowPrivateRanges = ['127.0.0.0/8']
  })
  const bystander = await addBystander(service)
  const before = await bystander.readResources()
  const { secret } = await service.ok('organizationKeyCreate', {
    token: await ownerToken(service),
    body: { name: 'schemathesis', role: 'owner' },
  })
  const report = join(service.dataDir, 'schemathesis.ndjson')
  const args = ['run', `${service.url}/openapi.json`, '--header', `Authorization: Bearer ${secret}`]
  const limits = [
    '--phases',
    'examples,coverage,fuzzing',
    '--max-examples',
    process.env.FUZZ_EXAMPLES ?? '50',
  ]
  const output = ['--checks', checks.join(','), '--warnings', 'off', '--report-ndjson-path', report]
  const child = spawn(process.env.SCHEMATHESIS!, [...args, ...limits, ...output], {
    cwd: service.dataDir,
    stdio: 'inherit',
  })
  const [code] = await once(child, 'close')
  expect(code).toBe(0)
  expect(readFileSync(report, 'utf8').includes(bystander.mark)).toBe(false)
  expect(await bystander.readResources()).toEqual(before)
})
