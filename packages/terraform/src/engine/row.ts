import type { RouteId } from '@slipway/contract'
import type { Attribute, Value, Values } from '../values/types.ts'
import type { Problem } from './diagnostics.ts'
import type { CallParts, Session } from './session.ts'

/** Data that the provider stores in addition to the state of a resource. */
export interface Private {
  /** The resource was imported, so values that only the creation request contains are unknown. */
  isImported?: boolean
  /** A VM was stopped for a change and not started again. */
  needsStart?: boolean
  /** The disks that were created with a VM (`new_disks`). */
  newDiskIds?: string[]
}

/** An attribute that exists only in the provider. Changing it does not call the service. */
export type LocalAttribute = Pick<Attribute, 'type' | 'description'> & { isComputed?: boolean }

/** A change of an existing resource. */
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
 * The properties of a resource that are not in the contract. The attributes, their types, and which of them
 * can be changed in place are derived from the schemas of the routes.
 */
export interface ResourceRow {
  /** The name in Terraform, after `slipway_`. */
  name: string
  /** The noun for messages, such as VM or disk. */
  noun: string
  /** One sentence for the documentation. */
  description: string
  /** The common prefix of the route ids (`vm` for vmCreate, vmGet, …), or the routes by verb. */
  routes: string | Partial<Record<'create' | 'get' | 'list' | 'update' | 'delete', RouteId>>
  /** An example for the documentation. Tests apply it. */
  example: string
  /** Text to add to the contract's descriptions of attributes. */
  notes?: Record<string, string>
  /** Fields of the contract that have no attribute, with the reason. */
  omitted?: Record<string, string>
  /** The service's fixed defaults for attributes that are not configured. */
  defaults?: Record<string, Value>
  /** The defaults apply only if this attribute is not configured. */
  defaultsUnless?: string
  /** Outputs, other than the id and the creation time, that never change while the resource exists. */
  fixed?: string[]
  /** Outputs that change with other resources, such as the VMs that a disk is attached to. */
  related?: string[]
  /**
   * Inputs that keep their value when they are removed from the configuration, because the service cannot
   * unset them.
   */
  kept?: string[]
  /** Inputs that have a value even if they are not configured; `derive` returns it. */
  derived?: string[]
  sensitive?: string[]
  local?: Record<string, LocalAttribute>
  /** Inputs that can change when the named input changes; the plan then shows "known after apply". */
  affected?: Record<string, string[]>
  /** Inputs that `change` updates in place, in addition to those of the update route. */
  inPlace?: string[]
  /** Returns whether a configured value means the same as the actual value, such as 1TiB and 1024GiB. */
  equivalent?: Record<string, (wanted: Value, actual: Value) => boolean>
  /** Inputs for which a refresh stores the actual value, even if the configured value means the same. */
  refreshed?: string[]
  /** Called for every record: reads additional values from another route, such as a price. */
  extend?(session: Session, projectId: string, record: Values): Promise<Values>
  /** Derives values from a record that are not fields of it. */
  derive?(record: Values, known: Values, store: Private): Values
  /** Finds mistakes in a configuration that the schemas cannot express. Values may be unknown. */
  checkConfig?(config: Values): Problem[]
  /** Finds changes that are not possible, and additional attributes whose change requires a replacement. */
  checkChange?(prior: Values, planned: Values, config: Values): { problems?: Problem[]; replace?: string[] }
  /** Makes changes that need more than the update route. Runs before the update. */
  change?(change: Change): Promise<void>
  /** Returns the private data to store after a creation, from the record and the request. */
  remember?(record: Values, request: Values): Private
  /** Prepares the deletion, if the service requires it. */
  beforeDelete?(deletion: Pick<Change, 'session' | 'prior' | 'call'>): Promise<void>
  /** Returns the query of the deletion request. */
  deleteQuery?(state: Values): Record<string, unknown>
  /** The body that resets a resource that has no route for deletion. */
  resetBody?: Record<string, unknown>
}
