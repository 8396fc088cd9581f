import { type DevBody, type DevRouteId, devRoutes } from '@slipway/contract'
import type { TestService } from '@slipway/testing/service.ts'
import { expect } from 'vitest'

/** The levers that these tests use. */
export function leversOf(service: TestService) {
  async function lever<Id extends DevRouteId>(route: Id, body?: DevBody<Id>, id = ''): Promise<void> {
    const { method, path } = devRoutes[route]
    const response = await fetch(`${service.url}${path.replace(/\{\w+\}/, id)}`, {
      method,
      headers: {
        authorization: `Bearer ${service.credentials.operator_key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    expect(response.status, await response.clone().text()).toBe(200)
  }
  return {
    lever,
    freeze: (now: string) => lever('clockSet', { mode: 'frozen', now }),
    advance: (seconds: number) => lever('clockAdvance', { seconds }),
    xid: (id: string, body: DevBody<'vmXid'>) => lever('vmXid', body, id),
    capacity: (type: string, location: string, free: number) =>
      lever('capacitySet', { type, location, free }),
    /** Ends the faults of all GPUs. */
    async repairAll() {
      for (const { id } of await service.sql<{ id: string }>(
        `SELECT DISTINCT h.id FROM hosts h JOIN simulated_xids x ON x.location = h.location AND x.host = h.name`,
      ))
        await lever('hostRecover', undefined, id)
    },
  }
}
