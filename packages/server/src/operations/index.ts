import type { Definition } from '../runner/operation.ts'
import { vmReaddress } from './address/readdress.ts'
import { customImageCreate, snapshotCreate } from './capture/create.ts'
import { customImageDelete, snapshotDelete } from './capture/delete.ts'
import { diskCreate, diskRestore } from './disk/create.ts'
import { diskDelete } from './disk/delete.ts'
import { diskResize } from './disk/resize.ts'
import { firewallRuleCreate } from './firewall/create.ts'
import { firewallRuleDelete } from './firewall/delete.ts'
import { firewallRuleUpdate } from './firewall/update.ts'
import { groupCreate } from './group/create.ts'
import { groupDelete } from './group/delete.ts'
import { groupStart, groupStop } from './group/power.ts'
import { groupReplace } from './group/replace.ts'
import { groupGrow, groupShrink } from './group/update.ts'
import { vmReplace } from './health/replace.ts'
import { vmAttachDisks } from './vm/attach-disks.ts'
import { vmCreate } from './vm/create.ts'
import { vmDelete } from './vm/delete.ts'
import { vmDetachDisks } from './vm/detach-disks.ts'
import { vmReset } from './vm/reset.ts'
import { vmStart } from './vm/start.ts'
import { vmStop } from './vm/stop.ts'
import { vmUpdate } from './vm/update.ts'

/** Every kind of operation. One test (`laws.test.ts`) checks the same rules for all of them. */
export const definitions: Definition[] = [
  vmCreate,
  vmStart,
  vmStop,
  vmReset,
  vmReplace,
  vmUpdate,
  vmReaddress,
  vmAttachDisks,
  vmDetachDisks,
  vmDelete,
  diskCreate,
  diskRestore,
  diskResize,
  diskDelete,
  firewallRuleCreate,
  firewallRuleUpdate,
  firewallRuleDelete,
  groupCreate,
  groupGrow,
  groupShrink,
  groupStart,
  groupStop,
  groupReplace,
  groupDelete,
  customImageCreate,
  customImageDelete,
  snapshotCreate,
  snapshotDelete,
]

/** Step names by kind, to show the steps of an operation before they begin. */
export const stepNames: ReadonlyMap<string, string[]> = new Map(
  definitions.map(({ kind, steps }) => [kind, steps.map(({ name }) => name)]),
)
