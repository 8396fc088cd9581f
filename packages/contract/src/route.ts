import type { TObject, TSchema } from 'typebox'
import type { ErrorCode } from './errors.ts'
import type { Role } from './states.ts'

/**
 * Who may call a route. `public`: anyone. `caller`: any valid credential. `user`: a person's token. `visible`: a caller that
 * can see the organization. A role: at least that role in the project or organization of the path.
 */
export type Access = 'public' | 'caller' | 'user' | 'visible' | Role | 'operator'

/** A route as its family writes it. */
interface RouteEntry {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With `{name}` for parameters; `{project_id}` and `{organization_id}` set the scope of `access`. */
  path: string
  tag: Tag
  summary: string
  description?: string
  access: Access
  /** A write key of a project of the organization may call it as well. */
  alsoWriteKeys?: true
  params?: TObject
  query?: TObject
  body?: TSchema
  answer: TSchema
  /** Beyond those that every route can give. */
  errors?: ErrorCode[]
  /** Refused while the payment method is gone or declined. */
  costsMoney?: true
  /** Inside a project, and answered although there has never been a payment method. */
  worksUnpaid?: true
  /** Beside deletions: something stops, or is lost, or stops working. */
  isDestructive?: true
  /** A POST that only computes. */
  changesNothing?: true
  /** The parameters or query members that name one tenant's thing: who reads it is put on record. */
  auditsReadOf?: string[]
  /** The handler opens its transactions itself, and no Idempotency-Key is remembered. */
  opensTransactions?: true
  /** Requests that come together share a transaction. */
  isBatched?: true
  /** Another media type that `Accept` may ask for. */
  alsoAnswers?: 'text/event-stream' | 'text/csv'
  /** Answered while the organization is suspended, too. */
  worksSuspended?: true
  /** The answer has a secret or is a session: never cached, never logged. */
  noStore?: true
}

export const tags = {
  Authentication: 'Tokens, passwords, invitations and the caller itself.',
  Organizations: 'Organizations, their members and billing.',
  Projects: 'Projects, access keys, budgets and costs.',
  Catalogue: 'Locations, types, images, prices, quotas and what is available now.',
  VMs: 'GPU virtual machines, and the SSH keys that they are given.',
  Disks: 'Persistent disks and shared volumes.',
  VPC: 'Networks, subnets and firewall rules.',
  Operations: 'Records of asynchronous work.',
  Events: 'The audit and life-cycle log, and webhooks.',
  Operators: 'For those who run the service.',
} as const
export type Tag = keyof typeof tags

/** Facts that follow from an entry. Server, documentation and clients read these, and no list beside the table. */
export interface RouteFacts {
  /** The answer is one page of a list. */
  isPaged: boolean
  /** The request is one transaction, which also remembers its Idempotency-Key. */
  isTransactional: boolean
  /** It must write an event. */
  isAudited: boolean
  /** What it needs: nothing; that there has been a payment method once; that the present one works. */
  payment: 'none' | 'once' | 'active'
}

export type Route = RouteEntry & RouteFacts

/** Completes one family of routes by their facts, and keeps their literal types for handlers and clients. */
export function defineRoutes<const T extends Record<string, RouteEntry>>(
  entries: T,
): { [Id in keyof T]: T[Id] & RouteFacts } {
  const routes = Object.entries(entries).map(([id, entry]) => [id, { ...entry, ...factsOf(entry) }])
  return Object.fromEntries(routes)
}

function factsOf(entry: RouteEntry): RouteFacts {
  const isTransactional = entry.method !== 'GET' && !entry.opensTransactions
  return {
    isPaged: 'next_page_token' in ((entry.answer as { properties?: object }).properties ?? {}),
    isTransactional,
    isAudited: isTransactional && !entry.changesNothing,
    payment: entry.costsMoney ? 'active' : isInsideProject(entry) && !entry.worksUnpaid ? 'once' : 'none',
  }
}

const isInsideProject = ({ path }: RouteEntry) => path.startsWith('/v0.1/projects/{project_id}/')
