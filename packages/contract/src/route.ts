import type { TObject, TSchema } from 'typebox'
import type { ErrorCode } from './errors.ts'
import type { Role } from './states.ts'

/**
 * Who may call a route. `public`: anyone. `caller`: any valid credential. `user`: a person's token. `visible`:
 * whoever can see the organization. A role: at least that role in the project or organization of the path.
 */
export type Access = 'public' | 'caller' | 'user' | 'visible' | Role | 'operator'

export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With `{name}` for parameters; `{project_id}` and `{organization_id}` set the scope of `access`. */
  path: string
  tag: Tag
  summary: string
  description?: string
  access: Access
  params?: TObject
  query?: TObject
  body?: TSchema
  answer: TSchema
  /** Beyond those that every route can give. */
  errors?: ErrorCode[]
  /** Refused while the payment method is gone or declined. */
  costsMoney?: true
  /** Another media type that `Accept` may ask for. */
  alsoAnswers?: 'text/event-stream' | 'text/csv'
  /** The answer has a secret or is a session: never cached, never logged. */
  noStore?: true
}

export const tags = {
  Authentication: 'Tokens, passwords, invitations and the caller itself.',
  Organizations: 'Organizations, their members and billing.',
  Projects: 'Projects, access keys, budgets and costs.',
  Catalogue: 'Locations, types, images, prices, quotas and what is available now.',
  VMs: 'GPU virtual machines.',
  Disks: 'Persistent disks and shared volumes.',
  VPC: 'Networks, subnets and firewall rules.',
  Operations: 'Records of asynchronous work.',
  Events: 'The audit and life-cycle log, and webhooks.',
  Operators: 'For those who run the service.',
} as const
export type Tag = keyof typeof tags

/** Keeps the literal types of one family of routes, so that handlers and clients are typed by them. */
export function defineRoutes<const T extends Record<string, Route>>(routes: T): T {
  return routes
}
