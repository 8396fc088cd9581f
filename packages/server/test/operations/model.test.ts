import { checkInvariants, settle } from '@slipway/testing/invariants.ts'
import { ownerToken } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { countOf } from '@slipway/testing/setup/counts.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, test } from 'vitest'
import { type ModelProject, ProjectModel } from '../support/model.ts'
import { type Step, steps } from '../support/model-steps.ts'

/** Independent projects, each with its own hosts, so that losses in one run do not affect another. */
const families = ['a40', 'a100', 'a100-80gb', 'l40s-48gb']
const locations = ['us-east1-a', 'us-west1-a']
const stepsPerRun = 50

let service: TestService
let projects: ModelProject[]

beforeAll(async () => {
  service = await startService()
  const { organization_id, operator_key } = service.credentials
  const token = await ownerToken(service)
  projects = []
  for (const location of locations)
    for (const family of families) {
      const name = `${location} ${family}`
      const { id: projectId } = await service.ok('projectCreate', { token, body: { name, organization_id } })
      const items = [{ name: `${family}_gpus`, max: 100 }]
      await service.ok('adminQuotaSet', { token: operator_key, body: { project_id: projectId, items } })
      const networks = await service.ok('networkList', { token, params: { project_id: projectId } })
      projects.push({ projectId, token, location, family, networkId: networks.items[0]!.id })
    }
})
afterAll(() => service.close())

async function runAll(histories: Step[][]): Promise<void> {
  const models = projects.map((project) => new ProjectModel(service, project))
  try {
    await Promise.all(
      histories.map(async (history, index) => {
        for (const step of history) await models[index]!.run(step)
      }),
    )
    for (const model of models) await model.compare()
    for (const location of locations) await service.simulator(location).clearFaults()
    await settle(service)
    await settle(service)
    await checkInvariants(service)
  } finally {
    for (const location of locations) await service.simulator(location).clearFaults()
    await Promise.allSettled(models.map((model) => model.clear()))
  }
}

test('the service keeps all invariants through random histories of requests and faults', {
  timeout: 900_000,
}, async () => {
  const history = fc.array(steps, { minLength: stepsPerRun, maxLength: stepsPerRun, size: 'max' })
  const histories = fc.array(history, { minLength: families.length * 2, maxLength: families.length * 2 })
  await fc.assert(
    fc.asyncProperty(histories, runAll),
    // Shrinking takes seconds for each attempt, so it is disabled here. Do it by hand with the seed.
    {
      numRuns: countOf('modelBatches'),
      endOnFailure: process.env.SLIPWAY_SHRINK === undefined,
      ...(process.env.SLIPWAY_PATH && { path: process.env.SLIPWAY_PATH }),
    },
  )
})
