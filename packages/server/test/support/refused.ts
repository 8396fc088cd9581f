import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { expect } from 'vitest'

/** The response to a request that is rejected for one of its fields, with this message. */
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
  /** A running VM with the name `standing`. */
  vmId: string
}

/** Starts a service with one VM. */
export async function startWithVm(): Promise<Standing> {
  const service = await startService()
  const resources = resourcesOf(service)
  return { service, resources, vmId: await resources.newVm({ name: 'standing' }) }
}
