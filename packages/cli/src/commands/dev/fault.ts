import type { DevFault, DevFaultCreate, FaultEffect } from '@slipway/contract'
import { command, type GroupSpec } from '../../core/command.ts'
import { parseDurationMs, parseNumber } from '../../core/parse.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { type Column, printList, printOne } from '../../output/print.ts'

/** The type makes the compiler report effects that are missing or not in the contract. */
const effects: Record<FaultEffect, true> = {
  fail: true,
  reject: true,
  lie: true,
  forget: true,
  delay: true,
  hang: true,
}

interface FaultInput {
  on: string
  effect: FaultEffect
  step?: string
  name?: string
  code?: DevFaultCreate['code']
  delay?: number
  after?: number
  times?: number
  probability?: number
  seed?: number
}

const create = command<FaultInput>({
  name: 'create',
  summary: 'make requests or operations fail',
  details: `Effects:
  fail    the request or the step of the operation fails
  reject  the request or the step fails with an error that a retry does not fix
  delay   the request or the step takes longer, see --delay
  hang    the request or the step never ends
  lie     the engine reports a success that inspection does not show
  forget  the engine accepts the change and does nothing

lie and forget apply only to operations. A fault is active until it is deleted, has taken effect --times times, or \`slipway dev reset\` ends it.`,
  arguments: [
    {
      syntax: '<on>',
      description: 'a kind of operation, such as vm-create, or an operationId of the API, such as vmCreate',
    },
  ],
  options: [
    {
      flags: '--effect <effect>',
      description: 'what the fault does',
      values: Object.keys(effects),
      required: true,
    },
    { flags: '--step <step>', description: 'only this step of the operation, for example boot' },
    {
      flags: '--name <pattern>',
      description: 'only resources whose name matches; * and ? are wildcards, so quote the pattern',
    },
    { flags: '--code <code>', description: 'error code' },
    {
      flags: '--delay <duration>',
      description: 'wait this long first, for example 2s',
      parse: parseDurationMs,
    },
    { flags: '--after <count>', description: 'ignore this many matches first', parse: parseNumber },
    {
      flags: '--times <count>',
      description: 'end the fault after it has taken effect this many times',
      parse: parseNumber,
    },
    {
      flags: '--probability <number>',
      description: 'probability that a match takes effect, between 0 and 1',
      parse: parseNumber,
    },
    { flags: '--seed <number>', description: 'random seed, for repeatable failures', parse: parseNumber },
  ],
  examples: [
    'slipway dev fault create vm-create --step boot --effect fail --after 2 --times 1',
    "slipway dev fault create vmCreate --effect reject --code out_of_stock --name 'train-*'",
    'slipway dev fault create vm-create --effect fail --probability 0.3 --seed 7',
  ],
  async run(cli, { name, delay, ...given }) {
    const fault = await cli.levers.faults.create({
      ...given,
      ...(name !== undefined && { name_pattern: name }),
      ...(delay !== undefined && { delay_ms: delay }),
    })
    await printOne(cli, fault, undefined, columns)
  },
})

const columns: Column<DevFault>[] = [
  { name: 'id', value: (fault) => fault.id },
  { name: 'on', value: (fault) => fault.on },
  { name: 'step', value: (fault) => fault.step },
  { name: 'name', value: (fault) => fault.name_pattern },
  { name: 'effect', value: (fault) => fault.effect },
  { name: 'code', value: (fault) => fault.code, hideOrder: 1 },
  { name: 'matched', value: (fault) => fault.matched, align: 'right' },
  { name: 'applied', value: (fault) => fault.applied, align: 'right' },
]
const members: (keyof DevFault)[] = [
  ...(['id', 'on', 'step', 'name_pattern', 'effect', 'code', 'delay_ms'] as const),
  ...(['after', 'times', 'probability', 'seed', 'matched', 'applied'] as const),
]

const list = command({
  name: 'list',
  summary: 'list active faults, and how often each matched and took effect',
  columns,
  examples: ['slipway dev fault list', 'slipway dev fault list -o json'],
  async run(cli) {
    await printList(cli, await cli.levers.faults.list(), columns, members)
  },
})

const remove = command<{ ids: string[]; all?: boolean }>({
  name: 'delete',
  summary: 'delete faults',
  arguments: [{ syntax: '[id...]', key: 'ids', description: 'ids of the faults, separated by spaces' }],
  options: [{ flags: '--all', description: 'all faults' }],
  examples: [
    'slipway dev fault delete 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10',
    'slipway dev fault delete 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e11',
    'slipway dev fault delete --all',
  ],
  async run(cli, { ids, all }) {
    if ((ids.length === 0) === !all) throw new UsageError('Give the ids of the faults, or --all.')
    if (all) await cli.levers.faults.deleteAll()
    for (const id of ids) await cli.levers.faults.delete(id)
    cli.note(all ? 'Deleted all faults.' : `Deleted ${ids.join(', ')}.`)
  },
})

export const devFault: GroupSpec = {
  name: 'fault',
  summary: 'faults that make requests and operations fail',
  commands: [create, list, remove],
}
