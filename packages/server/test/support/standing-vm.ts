import { resourcesOf } from '@slipway/testing/resources.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'

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
