import type { Snapshot } from '@slipway/sdk'
import { labelsColumn, labelsText } from '../../core/labels.ts'
import { ageColumn, idColumn, ownName, type Resource } from '../../core/resource.ts'
import { ageOf } from '../../output/text.ts'

/** Formats the stored size, which is billed. It is 0 while the copy is being created. */
export const storedText = (bytes: number) => (bytes === 0 ? '-' : `${(bytes / 1024 ** 3).toFixed(2)} GiB`)

export const snapshots: Resource<Snapshot> = {
  noun: 'snapshot',
  title: 'snapshot',
  example: 'datasets-monday',
  otherExample: 'datasets-tuesday',
  columns: [
    { name: 'name', value: (snapshot) => snapshot.name },
    { name: 'size', value: (snapshot) => snapshot.size, align: 'right' },
    { name: 'stored', value: (snapshot) => storedText(snapshot.stored_bytes), align: 'right' },
    { name: 'state', value: (snapshot) => snapshot.state, isState: true },
    { name: 'consistency', value: (snapshot) => snapshot.consistency, hideOrder: 1 },
    { name: 'location', value: (snapshot) => snapshot.location, hideOrder: 2 },
    ageColumn,
    idColumn,
    labelsColumn,
  ],
  route: 'snapshotList',
  list: async (cli, filter) =>
    cli.client.collect('snapshotList', { project_id: await cli.project(), ...filter }),
  named: ownName,
  fields: (snapshot) => [
    ['Name', snapshot.name],
    ['Id', snapshot.id],
    ['State', snapshot.state],
    ['Created from', snapshot.created_from],
    ['Size', snapshot.size],
    ['Stored', storedText(snapshot.stored_bytes)],
    ['Consistency', snapshot.consistency || '-'],
    ['Block size', String(snapshot.block_size || '-')],
    ['Location', snapshot.location],
    ['Labels', labelsText(snapshot.labels) || '-'],
    ['Protected', snapshot.deletion_protection ? 'from deletion' : 'no'],
    ['Created', `${snapshot.created_at} (${ageOf(snapshot.created_at)} ago)`],
  ],
}
