import { setTimeout as pause } from 'node:timers/promises'
import { isApiError } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import { command } from '../../core/command.ts'
import { idOf, refArgument } from '../../core/resource.ts'
import { safeLogText } from '../../output/untrusted.ts'
import { vms } from './resource.ts'

export const vmLog = command<{ ref: string; follow?: boolean; all?: boolean; raw?: boolean }>({
  name: 'log',
  summary: 'print the serial console of a VM',
  details:
    'Prints the last 64 KiB. Control characters other than line breaks are shown as codes, so that a program in the VM cannot control your terminal; --raw prints them unchanged. `-o` has no effect.',
  arguments: [refArgument(vms)],
  options: [
    { flags: '-f, --follow', description: 'continue until interrupted or until the VM is deleted' },
    { flags: '--all', description: 'print the log from the beginning' },
    { flags: '--raw', description: 'print the log unchanged, with control characters' },
  ],
  examples: ['slipway vm log train-7', 'slipway vm log train-7 -f'],
  async run(cli, { ref, follow, all, raw }) {
    const target = { project_id: await cli.project(), vm_id: await idOf(cli, vms, ref) }
    // A \r at the end of a chunk is held back, because it may be the first half of a \r\n.
    let held = ''
    for await (const content of readLog(cli, target, { follow, all })) {
      const text = held + content
      held = !raw && text.endsWith('\r') ? '\r' : ''
      const whole = text.slice(0, text.length - held.length)
      cli.io.stdout.write(raw ? whole : safeLogText(whole))
    }
    cli.io.stdout.write(safeLogText(held))
  },
})

interface LogOptions {
  follow: boolean | undefined
  all: boolean | undefined
}

async function* readLog(
  cli: Cli,
  target: { project_id: string; vm_id: string },
  { follow, all }: LogOptions,
) {
  let offset = all ? 0 : undefined
  for (;;) {
    const response = await cli.client.vmSerialLog({ ...target, offset }).catch((error) => {
      if (follow && offset !== undefined && isApiError(error) && error.code === 'not_found') return undefined
      throw error
    })
    if (!response) return
    const { content, next_offset } = response
    yield content
    const hasMore = content !== '' && next_offset !== offset
    offset = next_offset
    if (!follow && !(all && hasMore)) return
    if (!hasMore) await pause(1000)
  }
}
