import { command } from '../../core/command.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { printOne } from '../../output/print.ts'

export const devGuestAgent = command<{ state: string }>({
  name: 'guest-agent',
  summary: 'set whether simulated guests have an agent that freezes their file systems',
  arguments: [{ syntax: '<state>', description: 'present or absent', complete: ['present', 'absent'] }],
  examples: ['slipway dev guest-agent present', 'slipway dev guest-agent absent'],
  async run(cli, { state }) {
    if (state !== 'present' && state !== 'absent')
      throw new UsageError(`Unknown state ${state}. Supported: present, absent.`)
    await printOne(cli, await cli.levers.guestAgent.set({ present: state === 'present' }))
  },
})
