import { command } from '../../../core/command.ts'
import { idOf, refArgument } from '../../../core/resource.ts'
import { UsageError } from '../../../errors/cli-error.ts'
import { printOne } from '../../../output/print.ts'
import { hosts } from './resource.ts'

interface MaintenanceInput {
  ref: string
  at?: string
  note?: string
  cancel?: boolean
}

export const adminHostMaintenance = command<MaintenanceInput>({
  name: 'maintenance',
  summary: 'announce maintenance of a host to its tenants, or cancel it',
  arguments: [refArgument(hosts)],
  options: [
    { flags: '--at <time>', description: 'when the maintenance begins, for example 2026-12-01T06:00:00Z' },
    { flags: '--note <text>', description: 'note that the tenants see' },
    { flags: '--cancel', description: 'cancel or end the announced maintenance' },
  ],
  examples: [
    `slipway admin host maintenance ${hosts.example} --at 2026-12-01T06:00:00Z --note "New power supplies"`,
    `slipway admin host maintenance ${hosts.example} --cancel`,
  ],
  async run(cli, { ref, at, note, cancel }) {
    if ((at === undefined) === !cancel) throw new UsageError('Use either --at or --cancel.')
    const host_id = await idOf(cli, hosts, ref)
    const host = at
      ? await cli.operator.adminHostMaintenanceSet({ host_id }, { at, ...(note !== undefined && { note }) })
      : await cli.operator.adminHostMaintenanceDelete({ host_id })
    await printOne(cli, host, hosts.fields)
  },
})

export const adminHostNote = command<{ ref: string; text: string }>({
  name: 'note',
  summary: 'set a note on a host; only operators see it',
  arguments: [refArgument(hosts), { syntax: '<text>', description: 'the note; "" removes it' }],
  examples: [`slipway admin host note ${hosts.example} "The fan in slot 3 is loud"`],
  async run(cli, { ref, text }) {
    const host_id = await idOf(cli, hosts, ref)
    await printOne(cli, await cli.operator.adminHostUpdate({ host_id }, { note: text }), hosts.fields)
  },
})
