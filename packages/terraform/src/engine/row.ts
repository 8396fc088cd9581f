import type { RouteId } from '@slipway/contract'
import type { Attribute, Value, Values } from '../values/types.ts'
import type { Problem } from './diagnostics.ts'
import type { CallParts, Session } from './session.ts'

/** What the provider stores in addition to the state of a resource. */
export interface Private {
  /** The resource was imported: what only the creation's request says is not known. */
  isImported?: boolean
  /** A VM was stopped for a change and not started again. */
  needsStart?: boolean
  /** The disks that were created with a VM (`new_disks`). */
  newDiskIds?: string[]
}

/** An attribute that exists in the provider only. A change of it needs no call. */
export type LocalAttribute = Pick<Attribute, 'type' | 'description'> & { isComputed?: boolean }

/** One change of an existing resource, in the words of the engine. */
export interface Change {
  session: Session
  prior: Values
  planned: Values
  changed: Set<string>
  private: Private
  /** Calls a route and waits for its operation. The parameters of this resource are added. */
  call(route: RouteId, parts: CallParts): Promise<void>
}

/**
 * A resource, as far as the contract does not already say it. Attributes, their types, what can be changed in place and
 * how, follow from the schemas of the routes.
 */
export interface ResourceRow {
  /** The name in Terraform, after `slipway_`. */
  name: string
  /** The noun of messages: VM, disk. */
  noun: string
  /** One sentence for the documentation. */
  description: string
  /** The common beginning of its route ids (`vm`: vmCreate, vmGet, …), or the routes by name. */
  routes: string | Partial<Record<'create' | 'get' | 'list' | 'update' | 'delete', RouteId>>
  /** An example for the documentation, which tests apply. */
  example: string
  /** Sentences that the descriptions of attributes need besides those of the contract. */
  notes?: Record<string, string>
  /** Members of the contract that have no attribute, and why. */
  omitted?: Record<string, string>
  /** Values of attributes that are not configured, where the service has a fixed default. */
  defaults?: Record<string, Value>
  /** The defaults hold only for a configuration without this attribute. */
  defaultsUnless?: string
  /** Outputs that never change while the resource exists, besides the id and the time of creation. */
  fixed?: string[]
  /** Outputs that change with other resources, such as the VMs that a disk is attached to. */
  related?: string[]
  /** Inputs that keep their value when they are removed from the configuration, because the service cannot unset them. */
  kept?: string[]
  /** Inputs that have a value without being configured: `derive` returns it. */
  derived?: string[]
  sensitive?: string[]
  local?: Record<string, LocalAttribute>
  /** Inputs that can get another value when the input of this name changes: the plan then says "known after apply". */
  affected?: Record<string, string[]>
  /** Inputs that `change` changes in place, besides those of the update route. */
  inPlace?: string[]
  /** Returns whether a configured value means the same as another actual value, such as 1TiB and 1024GiB. */
  equivalent?: Record<string, (wanted: Value, actual: Value) => boolean>
  /** Inputs for which a refresh shows the actual value, even if the configured one means the same. */
  refreshed?: string[]
  /** Values that another route shows, such as a price. They are read with every record. */
  extend?(session: Session, projectId: string, record: Values): Promise<Values>
  /** Values that are not members of the record, derived from it. */
  derive?(record: Values, known: Values, store: Private): Values
  /** Finds mistakes in a configuration that the schemas cannot express. Values may be unknown. */
  checkConfig?(config: Values): Problem[]
  /** Finds changes that cannot be made; returns further attributes that need a replacement. */
  checkChange?(prior: Values, planned: Values, config: Values): { problems?: Problem[]; replace?: string[] }
  /** Makes changes that need more than the update route. It runs before the update. */
  change?(change: Change): Promise<void>
  /** Computes what to remember of a creation, from the record and the request. */
  remember?(record: Values, request: Values): Private
  /** Does what the service requires before a deletion. */
  beforeDelete?(deletion: Pick<Change, 'session' | 'prior' | 'call'>): Promise<void>
  /** The query of the deletion. */
  deleteQuery?(state: Values): Record<string, unknown>
  /** The body that resets a resource whose route has no deletion. */
  resetBody?: Record<string, unknown>
}
