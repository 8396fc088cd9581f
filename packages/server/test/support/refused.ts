import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { expect } from 'vitest'

/** The answer to a request that is refused for one of its fields, in these words. */
export const refused = (field: string, message: RegExp) => ({
  status: 400,
  body: {
    code: 'invalid_argument',
    message: expect.stringMatching(message),
    details: [{ field, message: expect.stringMatching(message) }],
  },
})

export interface Standing {
  service: TestService
  resources: ReturnType<typeof resourcesOf>
  /** A VM that runs, by the name `standing`. */
  vmId: string
}

/** A service on which requests find a VM. */
export async function startWithVm(): Promise<Standing> {
  const service = await startService()
  const resources = resourcesOf(service)
  return { service, resources, vmId: await resources.newVm({ name: 'standing' }) }
}
