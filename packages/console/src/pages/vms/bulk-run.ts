import type { Operation, Vm } from '@slipway/sdk'
import { invalidate, waitForEnd } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { plural } from '../../lib/format.ts'
import { showToast } from '../../lib/toasts.ts'
import { type BulkInput, type BulkName, bulkAction } from './bulk-table.ts'

export interface Failure {
  vm: Vm
  error: Error
}

export interface BulkProgress {
  total: number
  done: Vm[]
  failures: Failure[]
}

/** Browsers open at most six connections to a server, and the page needs some of them. */
const maxConcurrent = 4

async function forEachConcurrently<Item>(items: Item[], act: (item: Item) => Promise<void>): Promise<void> {
  const waiting = [...items]
  const work = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await act(item)
  }
  await Promise.all(Array.from({ length: maxConcurrent }, work))
}

/** Starts the action on a VM. */
function startBulkAction(name: BulkName, vm: Vm, input: BulkInput): Promise<{ operation: Operation }> {
  const target = { project_id: vm.project_id, vm_id: vm.id }
  const body = bulkAction(name).change(vm, input)
  return body ? client.vmUpdate(target, body) : client.vmDelete(target)
}

/** Runs an action on several VMs. Each request can fail independently. */
export async function runBulk(
  name: BulkName,
  vms: Vm[],
  input: BulkInput,
  onProgress: (progress: BulkProgress) => void,
): Promise<BulkProgress> {
  const progress: BulkProgress = { total: vms.length, done: [], failures: [] }
  const fail = (vm: Vm, error: unknown) => {
    progress.failures.push({ vm, error: error as Error })
    onProgress({ ...progress })
  }
  onProgress({ ...progress })
  const started: { vm: Vm; operation: Operation }[] = []
  // Start all operations before waiting for any of them, so that they run concurrently.
  await forEachConcurrently(vms, async (vm) => {
    try {
      started.push({ vm, operation: (await startBulkAction(name, vm, input)).operation })
    } catch (error) {
      fail(vm, error)
    }
  })
  await invalidate(['vmList'])
  await forEachConcurrently(started, async ({ vm, operation }) => {
    try {
      await waitForEnd(vm.project_id, operation)
      progress.done.push(vm)
      onProgress({ ...progress })
    } catch (error) {
      fail(vm, error)
    }
  })
  await invalidate(['vmList', 'quotaList'])
  return progress
}

export const resultText = (name: BulkName, vms: Vm[]): string =>
  `${bulkAction(name).past} ${vms.length === 1 ? vms[0]!.name : plural(vms.length, 'VM')}`

export const failureText = (name: BulkName, vms: string): string =>
  `Could not ${bulkAction(name).verb.toLowerCase()} ${vms}`

/** Reports the result of a run whose dialog was closed. */
export function reportBulk(name: BulkName, { done, failures }: BulkProgress, input: BulkInput): void {
  if (done.length > 0) showToast({ title: resultText(name, done) })
  const first = failures[0]
  if (!first) return
  const vms = failures.map(({ vm }) => vm)
  showToast({
    title: failureText(name, vms.map((vm) => vm.name).join(', ')),
    error: first.error,
    retry: async () => reportBulk(name, await runBulk(name, vms, input, () => {}), input),
  })
}
