import type { RouteId, Vm } from '@slipway/contract'
import type { FamilyCall } from '../request.ts'
import { type FamilyOperation, operationShape } from '../shapes/operations.ts'

/** An endpoint of the compatible API. Paths are relative to the version, and every parameter is an id. */
export interface FamilyRoute {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  /** Returns the body of the response. */
  respond(call: FamilyCall): Promise<unknown>
  /**
   * Set for a read that must not be rate limited, because clients drop a resource after any error. The read
   * makes no request to Slipway's own API, but requires the same rights as this route of that API.
   */
  unlimitedAs?: RouteId
}

type Respond = FamilyRoute['respond']

export const get = (path: string, respond: Respond): FamilyRoute => ({ method: 'GET', path, respond })
export const unlimitedGet = (path: string, unlimitedAs: RouteId, respond: Respond): FamilyRoute => ({
  ...get(path, respond),
  unlimitedAs,
})
export const post = (path: string, respond: Respond): FamilyRoute => ({ method: 'POST', path, respond })
export const put = (path: string, respond: Respond): FamilyRoute => ({ method: 'PUT', path, respond })
export const patch = (path: string, respond: Respond): FamilyRoute => ({ method: 'PATCH', path, respond })
export const remove = (path: string, respond: Respond): FamilyRoute => ({ method: 'DELETE', path, respond })

/** Returns the operation that a request to Slipway's own API began. */
export const begin = async (
  request: Promise<{ operation: Parameters<typeof operationShape>[0] }>,
): Promise<FamilyOperation> => operationShape((await request).operation)

/** Returns the project of the caller's key; for a key of an organization, the organization's first project. */
export async function defaultProject(call: FamilyCall): Promise<{ project_id: string } | undefined> {
  const { caller } = call.signer
  if (caller.kind === 'access_key' && caller.projectId) return { project_id: caller.projectId }
  const [first] = await call.ownApi('projectList')
  return first && { project_id: first.id }
}

/** The public address of a VM, which has one interface. */
export const publicAddressOf = (vm: Vm) => vm.network_interfaces[0]?.ips[0]?.public_ipv4
