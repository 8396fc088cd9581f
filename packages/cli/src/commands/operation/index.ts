import type { Operation } from '@slipway/sdk'
import { command, type GroupSpec } from '../../core/command.ts'
import { listCommand } from '../../core/generic-commands.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { follow } from '../../core/progress.ts'
import { print, printData, printList, printOne } from '../../output/print.ts'
import { words } from '../../output/text.ts'
import { operations } from './resource.ts'

const operationArgument = {
  syntax: '<operation>',
  description: 'id of the operation',
  complete: 'operation',
} as const
const exampleId = '0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'

interface ListInput {
  state?: string
  resource?: string
}

export const operation: GroupSpec = {
  name: 'operation',
  summary: 'work under way and its history',
  commands: [
    listCommand<Operation, ListInput>(operations, {
      options: [
        {
          flags: '--state <state>',
          description: 'in_progress, succeeded or failed',
          complete: ['in_progress', 'succeeded', 'failed'],
        },
        { flags: '--resource <id>', description: 'of one VM, disk or firewall rule' },
      ],
      examples: ['slipway operation list --state failed'],
      list: async (cli, { state, resource }) =>
        cli.client.collect('operationList', {
          project_id: await cli.project(),
          state: state?.toUpperCase() as Operation['state'] | undefined,
          resource_id: resource,
        }),
    }),
    command<{ operation: string }>({
      name: 'show',
      summary: 'show an operation and its steps',
      arguments: [operationArgument],
      examples: [`slipway operation show ${exampleId}`],
      async run(cli, input) {
        const target = { project_id: await cli.project(), operation_id: input.operation }
        const found = await cli.client.operationGet(target)
        await printOne(cli, found)
        if (cli.format.kind !== 'table' || cli.format.columns) return
        const { items } = await cli.client.operationSteps(target)
        print('')
        await printList(cli, items, [
          { name: 'step', value: (step) => words(step.name) },
          { name: 'state', value: (step) => step.state, isState: true },
          { name: 'started', value: (step) => step.started_at },
          { name: 'completed', value: (step) => step.completed_at },
        ])
      },
    }),
    command<{ operation: string; timeout?: number }>({
      name: 'wait',
      summary: 'wait for the end of an operation; print what it made',
      details:
        'Ends with the exit code of the operation: 0, 1 to 5 when it failed, 124 when the time was over.',
      arguments: [operationArgument],
      options: [
        { flags: '--timeout <duration>', description: 'wait no longer: 10m', parse: parseDurationMs },
      ],
      examples: [
        `slipway operation wait ${exampleId}`,
        `slipway operation wait ${exampleId} --timeout 10m -o json`,
      ],
      async run(cli, input) {
        const started = await cli.client.operationGet({
          project_id: await cli.project(),
          operation_id: input.operation,
        })
        const title = `${words(started.metadata.operation_name)} ${words(started.metadata.type)}`
        const finished = await follow(cli, title, started, input)
        if (finished && cli.format.kind !== 'table') await printData(cli, finished)
        else if (finished) print(finished.state)
      },
    }),
    command<{ operation: string }>({
      name: 'watch',
      summary: 'print each step of an operation as it ends',
      arguments: [operationArgument],
      examples: [`slipway operation watch ${exampleId}`],
      async run(cli, input) {
        const seen = new Map<string, string>()
        const { state } = await cli.client.wait({ project_id: await cli.project() }, input.operation, {
          onProgress: ({ steps }) => {
            for (const step of steps) {
              if (step.state === 'pending' || seen.get(step.name) === step.state) continue
              seen.set(step.name, step.state)
              if (cli.format.kind === 'json') print(JSON.stringify(step))
              else print(`${step.completed_at || step.started_at}  ${words(step.name)}  ${step.state}`)
            }
          },
        })
        if (cli.format.kind === 'table') print(state)
      },
    }),
  ],
}
