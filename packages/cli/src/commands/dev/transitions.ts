import { command } from '../../core/command.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { printOne } from '../../output/print.ts'

export const devTransitions = command<{ duration: string }>({
  name: 'transitions',
  summary: 'set how long VMs take to boot',
  arguments: [
    {
      syntax: '<duration>',
      description: 'immediate, or a duration on the service clock, such as 90s',
      complete: ['immediate'],
    },
  ],
  examples: ['slipway dev transitions immediate', 'slipway dev transitions 90s'],
  async run(cli, { duration }) {
    // A bare number is seconds, as in the API.
    const secondsOf = (text: string) => (/^\d+$/.test(text) ? Number(text) : parseDurationMs(text) / 1000)
    const body =
      duration === 'immediate'
        ? { mode: 'immediate' as const }
        : { mode: 'seconds' as const, n: secondsOf(duration) }
    await printOne(cli, await cli.levers.transitions.set(body))
  },
})
