import type { Snapshot } from '@slipway/sdk'
import { labelCommand, protectCommands, renameCommand } from '../../core/annotation-commands.ts'
import type { GroupSpec } from '../../core/command.ts'
import { deleteCommand, listCommand, showCommand } from '../../core/generic-commands.ts'
import { selectorOption } from '../../core/labels.ts'
import { snapshotCreate } from './create.ts'
import { snapshots } from './resource.ts'
import { snapshotRestore } from './restore.ts'

const kindWithLabels: Parameters<typeof labelCommand<Snapshot>>[0] = {
  resource: snapshots,
  get: async (cli, snapshot_id) => cli.client.snapshotGet({ project_id: await cli.project(), snapshot_id }),
  change: async (cli, snapshot_id, change) =>
    cli.client.snapshotUpdate({ project_id: await cli.project(), snapshot_id }, change),
}

export const snapshot: GroupSpec = {
  name: 'snapshot',
  summary: 'disk snapshots, from which you can create disks',
  commands: [
    snapshotCreate,
    listCommand<Snapshot, { selector?: string }>(snapshots, {
      options: [selectorOption],
      list: async (cli, { selector }) => snapshots.list(cli, { label_selector: selector }),
    }),
    showCommand(snapshots, async (cli, snapshot_id) =>
      cli.client.snapshotGet({ project_id: await cli.project(), snapshot_id }),
    ),
    snapshotRestore,
    renameCommand(kindWithLabels),
    labelCommand(kindWithLabels),
    ...protectCommands(kindWithLabels),
    deleteCommand(
      snapshots,
      async (cli, snapshot_id) => cli.client.snapshotDelete({ project_id: await cli.project(), snapshot_id }),
      { loses: 'Disks that were created from a deleted snapshot are kept.', isOperation: true },
    ),
  ],
}
