import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { QemuContext } from './context.ts'
import { isMissing } from './files.ts'
import { vmSocket } from './paths.ts'

/**
 * VMs that run since a version with QEMU's user networking: their control sockets are put where they are looked for,
 * so that they can be stopped. The forwarder of that version leaves when its own socket is gone; it would hold the
 * public ports and enforce the rules of the past.
 */
export async function adoptEarlierVms(ctx: QemuContext): Promise<void> {
  await rm(join(ctx.paths.root, 'forwarder.sock'), { force: true })
  for (const id of await ctx.records.ids()) {
    const folder = ctx.records.folder(id)
    await mkdir(join(folder, 'sockets'), { mode: 0o700 }).catch(() => {})
    const isEarlier = await rename(join(folder, 'qmp.sock'), vmSocket(folder, 'qmp')).then(
      () => true,
      (error) => {
        if (isMissing(error)) return false
        throw error
      },
    )
    if (!isEarlier) continue
    await rename(join(folder, 'segment.sock'), vmSocket(folder, 'segment')).catch(() => {})
    ctx.options.log.warn({ vmId: id }, 'a VM of an earlier version: stop and start it to make it reachable')
  }
}
