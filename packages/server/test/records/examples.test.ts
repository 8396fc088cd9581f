import { type ErrorCode, type EventType, errorStatus, routeIds } from '@slipway/contract'
import type { Recording } from '@slipway/contract/openapi/recording'
import { eventFacts } from '@slipway/contract/openapi/webhooks'
import { startService } from '@slipway/testing/service.ts'
import { expect, onTestFinished, test } from 'vitest'
import {
  recordFleet,
  recordFleetChanges,
  recordInterventions,
  recordReservations,
} from '../support/examples/operator.ts'
import { recordAccount, recordMembers, recordSigningUp } from '../support/examples/people.ts'
import { recordEventsAndTexts, startRecorder } from '../support/examples/recorder.ts'
import {
  recordFailures,
  recordMalformedRequests,
  recordRateLimit,
  recordRefusals,
} from '../support/examples/refusals.ts'
import { recordSingleSignOn } from '../support/examples/single-sign-on.ts'
import { shortenLists, stabilize } from '../support/examples/stable-values.ts'
import {
  recordCatalogue,
  recordEvents,
  recordMoney,
  recordRemoval,
  recordResources,
  recordWaiting,
} from '../support/examples/tenant.ts'

const file = new URL('../../../contract/src/openapi/recorded.json', import.meta.url).pathname

/** Performs the calls from which the examples of the OpenAPI document are recorded. */
async function recordedRun() {
  const service = await startService((config) => {
    config.mail = { smtpUrlEnv: 'X', smtpUrl: 'smtp://127.0.0.1:1', from: 'slipway@example.com' }
    config.webhooks.allowPrivateRanges = ['127.0.0.0/8']
  }, '2026-10-30T09:00:00Z')
  onTestFinished(() => service.close())
  const recorder = startRecorder(service, 'req-5f0c2d')
  const tenant = await recordSigningUp(recorder)
  await recordMembers(recorder, tenant)
  await recordCatalogue(recorder)
  const resources = await recordResources(recorder)
  await recordWaiting(recorder)
  await recordRefusals(recorder, resources)
  await recordMalformedRequests(recorder)
  await recordFleet(recorder, tenant, resources)
  await recordReservations(recorder, tenant)
  const receiver = await recordEvents(recorder, tenant)
  await recordMoney(recorder, tenant, resources)
  await recordRemoval(recorder, resources)
  await recordFleetChanges(recorder, tenant)
  await recordInterventions(recorder, tenant)
  await recordAccount(recorder)
  const issuer = await recordSingleSignOn(recorder, tenant.ownerToken)
  await recordEventsAndTexts(recorder)
  await recordRateLimit(recorder)
  recordFailures(recorder)
  const addresses = {
    [service.url]: 'http://127.0.0.1:8080',
    [service.url.replace('http', 'ws')]: 'ws://127.0.0.1:8080',
    [issuer]: 'https://idp.example.com',
    [receiver]: 'https://hooks.example.com',
  }
  const recording = stabilize(shortenLists(recorder.recording) as Recording, addresses)
  const log = recording.routes.vmSerialLog!.response as { content: string; next_offset: number }
  // The recorded offset counts the bytes of the log before the addresses of this run were replaced.
  log.next_offset = Buffer.byteLength(log.content)
  return recording
}

test('the examples of the OpenAPI document match the responses of the service', async () => {
  const recording = await recordedRun()
  expect(routeIds.filter((id) => !recording.routes[id])).toEqual([])
  expect(Object.keys(errorStatus).filter((code) => !recording.errors[code as ErrorCode])).toEqual([])
  for (const [type, event] of Object.entries(recording.events)) {
    const documented = Object.keys(eventFacts[type as EventType].data)
    const { data } = event as { data: object }
    expect([type, Object.keys(data).filter((name) => !documented.includes(name))]).toEqual([type, []])
  }
  await expect(`${JSON.stringify(recording, null, 2)}\n`).toMatchFileSnapshot(file)
}, 300_000)
