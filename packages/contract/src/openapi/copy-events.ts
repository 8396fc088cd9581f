import {
  deletionRepeated,
  type EventFacts,
  eventsOf,
  id,
  labels,
  operation_id,
  operationData,
} from './event-facts.ts'

type CopyType = 'custom_image' | 'snapshot'
type Change =
  | 'available'
  | 'creating'
  | 'deleted'
  | 'deleting'
  | 'deletion_repeated'
  | 'failed'
  | 'lost'
  | 'updated'

const copies = {
  custom_image: {
    noun: 'custom image',
    tail: 'b07',
    name: 'trainer:v1',
    source: id('b01'),
    changeable: 'description, tags, labels or protection',
    updated: { description: 'With CUDA 13', tags: ['cuda'], deletion_protection: true },
  },
  snapshot: {
    noun: 'snapshot',
    tail: 'b08',
    name: 'datasets-monday',
    source: id('b02'),
    changeable: 'name, description, labels or protection',
    updated: { description: 'Before the migration', deletion_protection: true },
  },
}

/** Custom images and snapshots have the same events. */
export function copyEvents<Type extends CopyType>(type: Type): Record<`${Type}.${Change}`, EventFacts> {
  const { noun, tail, name, source, changeable, updated } = copies[type]
  const copy = eventsOf(type, id(tail), 'project', { name, labels, operation_id })
  const facts: Record<Change, EventFacts> = {
    available: copy(`A ${noun} is ready for use.`, { stored_bytes: 3_221_225_472, consistency: 'off' }),
    creating: copy(`The creation of a ${noun} was accepted.`, {
      ...operationData('CREATE'),
      location: 'us-east1-a',
      source_id: source,
    }),
    deleted: copy(`A ${noun} was deleted.`),
    deleting: copy(`The deletion of a ${noun} was accepted.`, operationData('DELETE')),
    deletion_repeated: deletionRepeated(type, tail, `a ${noun}`),
    failed: copy(`A ${noun} could not be created.`, { reason: 'no space left on the disk of this host' }),
    lost: copy(`A ${noun} was lost with its host.`, { detail: 'its host is lost permanently' }),
    updated: copy(`The ${changeable} of a ${noun} changed.`, updated),
  }
  return Object.fromEntries(
    Object.entries(facts).map(([change, fact]) => [`${type}.${change}`, fact]),
  ) as Record<`${Type}.${Change}`, EventFacts>
}
