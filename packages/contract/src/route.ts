import type { TObject, TSchema } from 'typebox'
import type { ErrorCode } from './errors.ts'
import type { Role } from './states.ts'

/**
 * Who may call a route. `public`: anyone. `caller`: any valid credential. `user`: a user's token. `visible`:
 * a caller that can see the organization. A role: at least that role in the path's project or organization.
 */
export type Access = 'public' | 'caller' | 'user' | 'visible' | Role | 'operator'

/** A route as it is written in the route table. */
interface RouteEntry {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With `{name}` for parameters; `{project_id}` and `{organization_id}` set the scope of `access`. */
  path: string
  tag: Tag
  summary: string
  description?: string
  access: Access
  /** A write key of one of the organization's projects may also call the route. */
  alsoWriteKeys?: true
  params?: TObject
  query?: TObject
  body?: TSchema
  response: TSchema
  /** Error codes in addition to those that every route can return. */
  errors?: ErrorCode[]
  /** Rejected while the organization has no valid payment method. */
  costsMoney?: true
  /** A project route that works even if the organization has never had a payment method. */
  worksUnpaid?: true
  /** A route, other than a deletion, that can stop or break something or lose data. */
  isDestructive?: true
  /** A POST that only computes a result. */
  changesNothing?: true
  /** The parameter that identifies the tenant, for operator reads whose response does not name the tenant. */
  tenantIn?: 'organization_id' | 'project_id'
  /** An operator's list that clients poll, such as the list of hosts. Its reads are not recorded as events. */
  isInventory?: true
  /** The handler opens its own transactions, and no Idempotency-Key is stored. */
  opensTransactions?: true
  /** Concurrent requests share a transaction. */
  isBatched?: true
  /** Another media type that a client can request with `Accept`. */
  alsoReturns?: 'text/event-stream' | 'text/csv'
  /** The response is text in the Prometheus format, and `response` is a string. */
  isText?: true
  /** Also works while the organization is suspended. */
  worksSuspended?: true
  /** The response contains a secret or a session: never cached, never logged. */
  noStore?: true
}

export const tags = {
  Authentication: 'Tokens, passwords, sessions, invitations and the current caller.',
  Organizations: 'Organizations, their members and billing.',
  Projects: 'Projects, access keys, budgets and costs.',
  Catalogue: 'Locations, VM types, images, prices, quotas and current availability.',
  VMs: 'GPU virtual machines, SSH keys, instance templates and instance groups.',
  Disks: 'Persistent disks, shared volumes, snapshots and custom images.',
  VPC: 'Networks, subnets, reserved addresses and firewall rules.',
  Operations:
    'Asynchronous operations on VMs, disks, firewall rules, instance groups, custom images and snapshots.',
  Events: 'Audit log and life-cycle events, alerts and webhooks.',
  Operators: 'Endpoints for operators of the service.',
} as const
export type Tag = keyof typeof tags

/** Properties that are derived from an entry. The server, the documentation and the clients use them. */
export interface RouteFacts {
  /** The response is one page of a list. */
  isPaged: boolean
  /** The request runs in one transaction, which also stores its Idempotency-Key. */
  isTransactional: boolean
  /** The handler must write an event. */
  isAudited: boolean
  /** An operator's read, for which an event is written for each tenant in the response. */
  recordsTenants: boolean
  /**
   * `none`: not needed. `once`: a payment method was set at some time. `active`: the current one is valid.
   */
  payment: 'none' | 'once' | 'active'
}

export type Route = RouteEntry & RouteFacts

/** Adds the derived properties to routes, and keeps their literal types for handlers and clients. */
export function defineRoutes<const T extends Record<string, RouteEntry>>(
  entries: T,
): { [Id in keyof T]: T[Id] & RouteFacts } {
  const routes = Object.entries(entries).map(([id, entry]) => [id, { ...entry, ...factsOf(entry) }])
  return Object.fromEntries(routes)
}

function factsOf(entry: RouteEntry): RouteFacts {
  const isTransactional = entry.method !== 'GET' && !entry.opensTransactions
  return {
    isPaged: 'next_page_token' in ((entry.response as { properties?: object }).properties ?? {}),
    isTransactional,
    isAudited: isTransactional && !entry.changesNothing,
    recordsTenants: entry.access === 'operator' && entry.method === 'GET' && !entry.isInventory,
    payment: entry.costsMoney ? 'active' : isInsideProject(entry) && !entry.worksUnpaid ? 'once' : 'none',
  }
}

const isInsideProject = ({ path }: RouteEntry) => path.startsWith('/v0.1/projects/{project_id}/')
