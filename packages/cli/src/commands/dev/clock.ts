import { command, type GroupSpec, type OptionSpec } from '../../core/command.ts'
import { parseDurationMs, parseNumber, parseTime } from '../../core/parse.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { printOne } from '../../output/print.ts'

const show = command({
  name: 'show',
  summary: 'show the time and the mode of the clock',
  examples: ['slipway dev clock show', 'slipway dev clock show -o columns=now'],
  async run(cli) {
    await printOne(cli, await cli.levers.clock.get())
  },
})

const advance = command<{ duration?: string; to?: string }>({
  name: 'advance',
  summary: 'move the clock forward and run everything that becomes due',
  details:
    'Expiries, operations, invoices and webhooks run in order, each at its scheduled time. The command returns when all of them are done.',
  arguments: [{ syntax: '[duration]', description: 'how far to advance, for example 90s, 15m, 4h or 31d' }],
  options: [
    { flags: '--to <time>', description: 'time to advance to, for example 2027-01-01', parse: parseTime },
  ],
  examples: ['slipway dev clock advance 31d', 'slipway dev clock advance --to 2027-01-01'],
  async run(cli, { duration, to }) {
    if ((duration === undefined) === (to === undefined))
      throw new UsageError('Give a duration, for example 31d, or --to with a time.')
    const distance = to === undefined ? { seconds: parseDurationMs(duration!) / 1000 } : { to }
    await printOne(cli, await cli.levers.clock.advance(distance))
  },
})

const atOption: OptionSpec = {
  flags: '--at <time>',
  description: 'advance to this time first, for example 2027-01-01',
  parse: parseTime,
}
const timeOf = (at: string | undefined) => (at === undefined ? {} : { now: at })

const freeze = command<{ at?: string }>({
  name: 'freeze',
  summary: 'stop the clock; only `dev clock advance` moves it',
  options: [atOption],
  examples: ['slipway dev clock freeze', 'slipway dev clock freeze --at 2027-01-31T23:59:00Z'],
  async run(cli, { at }) {
    await printOne(cli, await cli.levers.clock.set({ mode: 'frozen', ...timeOf(at) }))
  },
})

const set = command<{ rate: number; at?: string }>({
  name: 'set',
  summary: 'make the clock run faster or slower',
  options: [
    {
      flags: '--rate <number>',
      description: 'seconds on the service clock per real second, for example 3600',
      required: true,
      parse: parseNumber,
    },
    atOption,
  ],
  examples: ['slipway dev clock set --rate 3600'],
  async run(cli, { rate, at }) {
    await printOne(cli, await cli.levers.clock.set({ mode: 'scaled', rate, ...timeOf(at) }))
  },
})

const real = command({
  name: 'real',
  summary: 'run the clock at normal speed from its current time',
  details: 'The clock never moves backward. To return to the real time, use `slipway dev reset`.',
  examples: ['slipway dev clock real'],
  async run(cli) {
    await printOne(cli, await cli.levers.clock.set({ mode: 'real' }))
  },
})

export const devClock: GroupSpec = {
  name: 'clock',
  summary: 'the service clock',
  commands: [show, advance, freeze, set, real],
}
