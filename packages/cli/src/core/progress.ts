import { type Finished, isApiError, type Operation, type StartedOperation } from '@slipway/sdk'
import { CliError, exitCodes } from '../errors/cli-error.ts'
import { print, printOne } from '../output/print.ts'
import type { Cli } from './cli.ts'
import type { OptionSpec } from './command.ts'
import { parseDurationMs } from './parse.ts'
import { progressView } from './progress-view.ts'

export interface WaitFlags {
  wait?: boolean
  timeout?: number
}

export const waitOptions: OptionSpec[] = [
  { flags: '--no-wait', description: 'print the operation instead of waiting for it' },
  {
    flags: '--timeout <duration>',
    description: 'how long to wait before giving up (exit code 124), for example 10m',
    parse: parseDurationMs,
  },
]

/**
 * Waits for an operation and shows its steps. With `--no-wait`, prints the operation and returns undefined.
 */
export async function follow<Result>(
  cli: Cli,
  title: string,
  operation: StartedOperation<Result>,
  flags: WaitFlags,
): Promise<Finished<Result> | undefined> {
  if (flags.wait === false) {
    if (cli.format.kind === 'table' && !cli.format.columns) print(cli, operation.operation_id)
    else await printOne(cli, operation)
    return undefined
  }
  const view = progressView(cli, title)
  const interrupt = new AbortController()
  const stop = () => interrupt.abort()
  process.once('SIGINT', stop)
  try {
    const finished = await cli.client.wait({ project_id: await cli.project() }, operation, {
      timeoutMs: flags.timeout,
      signal: interrupt.signal,
      onProgress: view && (({ steps }) => view.show(steps)),
    })
    view?.end('done')
    return finished
  } catch (error) {
    const continues = interrupt.signal.aborted || (isApiError(error) && error.code === 'timed_out')
    view?.end(continues ? 'continues' : 'failed')
    if (interrupt.signal.aborted) throw new WaitInterrupted(title, operation)
    throw error
  } finally {
    process.off('SIGINT', stop)
  }
}

const nouns = {
  vm: 'vm',
  disk: 'disk',
  firewall_rule: 'firewall',
  instance_group: 'group',
  custom_image: 'custom-image',
  snapshot: 'snapshot',
} as const

/** Says that Ctrl-C ended only the wait, not the operation. */
class WaitInterrupted extends CliError {
  constructor(title: string, { operation_id, metadata }: Operation) {
    super('interrupted', `Stopped waiting. The operation continues: ${title}.`, exitCodes.interrupted, [
      `To follow the operation, run \`slipway operation wait ${operation_id}\`.`,
      ...(metadata.operation_name === 'CREATE'
        ? [`To undo it, run \`slipway ${nouns[metadata.type]} delete ${metadata.id}\`.`]
        : []),
    ])
  }
}
