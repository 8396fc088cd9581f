import type { VmUpdate } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { follow, type WaitFlags } from '../../core/progress.ts'
import { idOf } from '../../core/resource.ts'
import { printData } from '../../output/print.ts'
import { vms } from './resource.ts'

/** Sends a change and waits for it. Prints the VM unless the output is a table. */
export async function updateVm(
  cli: Cli,
  ref: string,
  title: string,
  body: VmUpdate,
  wait: WaitFlags,
): Promise<void> {
  const project_id = await cli.project()
  const vm_id = await idOf(cli, vms, ref)
  const { operation } = await cli.client.vmUpdate({ project_id, vm_id }, body)
  const finished = await follow(cli, `${title} ${ref}`, operation, wait)
  if (finished && cli.format.kind !== 'table') await printData(cli, finished.result)
}
