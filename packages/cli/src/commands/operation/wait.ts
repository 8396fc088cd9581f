import { command } from '../../core/command.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { follow } from '../../core/progress.ts'
import { print, printData } from '../../output/print.ts'
import { words } from '../../output/text.ts'
import { operationArgument, operations } from './resource.ts'

export const operationWait = command<{ operation: string; timeout?: number }>({
  name: 'wait',
  summary: 'wait for an operation to end and print its result',
  details: 'Exit code: 0 if the operation succeeded, 1 to 5 if it failed, 124 if it did not end in time.',
  arguments: [operationArgument],
  options: [
    {
      flags: '--timeout <duration>',
      description: 'how long to wait, for example 10m',
      parse: parseDurationMs,
    },
  ],
  examples: [
    `slipway operation wait ${operations.example}`,
    `slipway operation wait ${operations.example} --timeout 10m -o json`,
  ],
  async run(cli, input) {
    const target = { project_id: await cli.project(), operation_id: input.operation }
    const started = await cli.client.operationGet(target)
    const title = `${words(started.metadata.operation_name)} ${words(started.metadata.type)}`
    const finished = await follow(cli, title, started, input)
    if (finished && cli.format.kind !== 'table') await printData(cli, finished)
    else if (finished) print(cli, finished.state)
  },
})
