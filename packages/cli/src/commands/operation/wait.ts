import { command } from '../../core/command.ts'
import { parseDurationMs } from '../../core/parse.ts'
import { follow } from '../../core/progress.ts'
import { print, printData } from '../../output/print.ts'
import { words } from '../../output/text.ts'
import { operationArgument, operations } from './resource.ts'

export const operationWait = command<{ operation: string; timeout?: number }>({
  name: 'wait',
  summary: 'wait for an operation to end and print its result',
  details: 'Ends with the exit code of the operation: 0, 1 to 5 when it failed, 124 when the time was over.',
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
