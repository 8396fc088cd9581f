import type { AnnotationUpdate, Labels } from '@slipway/contract'
import type { Tx } from '../../postgres/database.ts'
import { statement } from '../../postgres/statement.ts'

interface Annotations {
  id: string
  name: string | null
  labels: Labels | null
  description: string | null
  isProtected: boolean | null
}

/**
 * Returns a function that changes the name, labels, description and protection of a resource. Values that are
 * not given stay unchanged.
 */
export function annotationOf(what: 'vm' | 'disk') {
  const update = statement<never, Annotations>(
    `${what}_annotate`,
    `UPDATE ${what}s SET name = coalesce(:name, name), labels = coalesce(:labels, labels),
            description = coalesce(:description, description), is_protected = coalesce(:isProtected, is_protected),
            updated_at = slipway_now()
     WHERE id = :id`,
  )
  return (tx: Tx, id: string, change: AnnotationUpdate): Promise<number> =>
    update.run(tx, {
      id,
      name: change.name ?? null,
      labels: change.labels ?? null,
      description: change.description ?? null,
      isProtected: change.deletion_protection ?? null,
    })
}
