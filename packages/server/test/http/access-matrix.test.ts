import { randomBytes } from 'node:crypto'
import { type Role, type Route, roles, routeIds, routeOf } from '@slipway/contract'
import { addOrganization, addProject, setPayment, tokenOfNew } from '@slipway/testing/people.ts'
import { startService, type TestService } from '@slipway/testing/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newAccessKey } from '../../src/domain/access-key.ts'
import { type Callers, makeCallers } from '../support/callers.ts'

let service: TestService
let callers: Callers
/** Owners of organizations that have no working payment method, each for a different reason. */
const unpaid: Record<string, { owner: string; organization_id: string; project_id: string }> = {}

beforeAll(async () => {
  service = await startService()
  callers = await makeCallers(service)
  for (const state of ['never', 'declined', 'removed'] as const) {
    const organization_id = await addOrganization(service.database, state)
    const owner = await tokenOfNew(service.database, { memberOf: { [organization_id]: 'owner' } })
    const project_id = await addProject(service, owner, organization_id, 'first')
    unpaid[state] = { owner, organization_id, project_id }
    await setPayment(service.database, organization_id, state)
  }
})
afterAll(() => service.close())

/**
 * The caller's properties that the access rules use. `role` is the role in the organization of the path; for a key also
 * in its project.
 */
interface Kind {
  token: (callers: Callers) => string | null
  isUser?: boolean
  isOperator?: boolean
  role?: Role
  keyRole?: Role
  /** Can see the organization record without a role in the organization. */
  isKeyOfOrganization?: boolean
  isWriteKey?: boolean
}

const unknownCallers: Record<string, Kind> = {
  'no credential': { token: () => null },
  garbage: { token: () => 'garbage' },
  'a well-formed key that does not exist': { token: () => newAccessKey(randomBytes).text },
  'an expired token': { token: (all) => all.expired },
  'a revoked key': { token: (all) => all.revoked },
  'the child of a revoked key': { token: (all) => all.childOfRevoked },
  'the child of an expired key': { token: (all) => all.childOfExpired },
  'the code of an invitation': { token: (all) => all.invitationCode },
}

const knownCallers: Record<string, Kind> = {
  'the owner of another organization': { token: (all) => all.stranger, isUser: true },
  'a key of another organization': { token: (all) => all.strangerKey },
  'a key of another project': { token: (all) => all.siblingKey, isKeyOfOrganization: true, isWriteKey: true },
  'the read key': { token: (all) => all.readKey, keyRole: 'viewer', isKeyOfOrganization: true },
  'the write key': {
    token: (all) => all.writeKey,
    keyRole: 'member',
    isKeyOfOrganization: true,
    isWriteKey: true,
  },
  'the write key that a key created': {
    token: (all) => all.childProjectKey,
    keyRole: 'member',
    isKeyOfOrganization: true,
    isWriteKey: true,
  },
  'the operator key that a key created': { token: (all) => all.childOperatorKey, isOperator: true },
  'the operator key': { token: (all) => all.operatorKey, isOperator: true },
  'an operator who is not a member': { token: (all) => all.operator, isUser: true, isOperator: true },
  'the viewer': { token: (all) => all.members.viewer, isUser: true, role: 'viewer' },
  'the member': { token: (all) => all.members.member, isUser: true, role: 'member' },
  'the admin': { token: (all) => all.members.admin, isUser: true, role: 'admin' },
  'the owner': { token: (all) => all.members.owner, isUser: true, role: 'owner' },
}

for (const role of roles) {
  knownCallers[`the organization’s ${role} key`] = { token: (all) => all.organizationKeys[role], role }
  knownCallers[`the ${role} key that a key created`] = { token: (all) => all.childKeys[role], role }
}

const scopeOf = (route: Route) =>
  route.access === 'operator'
    ? 'none'
    : route.path.includes('{project_id}')
      ? 'project'
      : route.path.includes('{organization_id}')
        ? 'organization'
        : 'none'

/**
 * Every request is invalid in a way that is checked last, so that an admitted caller gets 400 and nothing is changed.
 */
const admittedStatus = 400

function expectedStatus(route: Route, kind: Kind): number {
  if (route.access === 'public') return admittedStatus
  if (Object.values(unknownCallers).includes(kind)) return 401
  if (route.access === 'operator') return kind.isOperator ? admittedStatus : 403
  if (route.access === 'user' && !kind.isUser) return 403
  if (scopeOf(route) === 'none') return admittedStatus
  const role = scopeOf(route) === 'project' ? (kind.role ?? kind.keyRole) : kind.role
  const isVisible = role !== undefined || (scopeOf(route) === 'organization' && kind.isKeyOfOrganization)
  if (!isVisible) return 404
  if (route.access === 'visible') return admittedStatus
  if (route.alsoWriteKeys && kind.isWriteKey) return admittedStatus
  return role && roles.indexOf(role) >= roles.indexOf(route.access as Role) ? admittedStatus : 403
}

async function probe(route: Route, token: string | null, scope: Record<string, string> = {}) {
  const { project_id, organization_id } = service.credentials
  const params: Record<string, string> = { project_id, organization_id, ...scope }
  const path = route.path.replace(
    /\{(\w+)\}/g,
    (_, name: string) => params[name] ?? '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10',
  )
  const body = route.body ? { body: '{}' } : {}
  return service.request(route.method, `${path}?not_a_parameter=1`, { token, ...body })
}

const allCallers = Object.entries({ ...unknownCallers, ...knownCallers })

test.each(routeIds)('%s admits exactly the callers that its access level allows', async (id) => {
  const route: Route = routeOf(id)
  const needsScope = roles.includes(route.access as Role) || route.access === 'visible'
  expect(scopeOf(route) !== 'none', 'a role applies to a project or organization').toBe(needsScope)
  const responses = await Promise.all(
    allCallers.map(async ([name, kind]) => ({ name, ...(await probe(route, kind.token(callers))) })),
  )
  expect(Object.fromEntries(responses.map(({ name, status }) => [name, status]))).toEqual(
    Object.fromEntries(allCallers.map(([name, kind]) => [name, expectedStatus(route, kind)])),
  )
  for (const { status, body, headers } of responses) {
    if (status === admittedStatus) expect(body).toMatchObject({ code: 'invalid_argument' })
    if (status === 401) expect(headers.get('www-authenticate')).toBe('Bearer')
  }
})

test.each(routeIds)('%s requires a payment method where the contract says so', async (id) => {
  const route: Route = routeOf(id)
  const isInProject =
    route.path.startsWith('/v0.1/projects/{project_id}/') && !/\/(access|ssh)-keys/.test(route.path)
  for (const [state, { owner, ...scope }] of Object.entries(unpaid)) {
    const isGated = state === 'never' ? isInProject : route.costsMoney === true
    const expected = route.access === 'operator' ? 403 : isGated ? 402 : admittedStatus
    const { status, body } = await probe(route, owner, scope)
    expect(status, state).toBe(expected)
    if (status === 402)
      expect(body).toMatchObject({
        message: expect.stringContaining(`/v0.1/organizations/${scope.organization_id}/billing`),
      })
  }
})
