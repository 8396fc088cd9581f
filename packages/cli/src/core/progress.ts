import type { Finished, Operation, OperationStep } from '@slipway/sdk'
import { print, printOne } from '../output/print.ts'
import { durationText, words } from '../output/text.ts'
import { laidOut } from '../output/untrusted.ts'
import type { Cli } from './cli.ts'
import type { OptionSpec } from './command.ts'
import { parseDurationMs } from './parse.ts'

export interface WaitFlags {
  wait?: boolean
  timeout?: number
}

export const waitOptions: OptionSpec[] = [
  { flags: '--no-wait', description: 'do not wait for the end: print the operation' },
  {
    flags: '--timeout <duration>',
    description: 'wait no longer than this (exit code 124), for example 10m',
    parse: parseDurationMs,
  },
]

/**
 * Follows an operation to its end, with live steps on a terminal. With `--no-wait` it prints the operation and returns
 * undefined.
 */
export async function follow<Result>(
  cli: Cli,
  title: string,
  operation: Operation,
  flags: WaitFlags,
): Promise<Finished<Result> | undefined> {
  if (flags.wait === false) {
    if (cli.format.kind === 'table' && !cli.format.columns) print(operation.operation_id)
    else await printOne(cli, operation)
    return undefined
  }
  const view = cli.showsProgress ? new StepView(cli, title) : undefined
  try {
    const finished = await cli.client.wait<Result>({ project_id: await cli.project() }, operation, {
      timeoutMs: flags.timeout,
      onProgress: view && (({ steps }) => view.show(steps)),
    })
    view?.end('done')
    return finished
  } catch (error) {
    view?.end('failed')
    throw error
  }
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

/** Draws a title with a spinner and the steps below it, each time over the drawing before. */
class StepView {
  private readonly cli: Cli
  private readonly title: string
  private readonly startedAt = Date.now()
  private readonly timer: NodeJS.Timeout
  private steps: OperationStep[] = []
  private drawnLines = 0
  private tick = 0

  constructor(cli: Cli, title: string) {
    this.cli = cli
    this.title = title
    this.draw(frames[0]!)
    this.timer = setInterval(() => {
      this.tick += 1
      this.draw(frames[this.tick % frames.length]!)
    }, 100)
  }

  show(steps: OperationStep[]): void {
    this.steps = steps
  }

  end(outcome: 'done' | 'failed'): void {
    clearInterval(this.timer)
    const colors = this.cli.noteColors
    this.draw(outcome === 'done' ? colors.green('✓') : colors.red('✗'))
  }

  private draw(mark: string): void {
    const colors = this.cli.noteColors
    const elapsed = colors.dim(durationText(Date.now() - this.startedAt))
    const lines = [`${mark} ${this.title} ${elapsed}`, ...this.steps.map((step) => this.stepLine(step, mark))]
    const back = this.drawnLines > 0 ? `\x1b[${this.drawnLines}A` : ''
    process.stderr.write(back + lines.map((line) => `\r\x1b[2K${laidOut(line)}\n`).join(''))
    this.drawnLines = lines.length
  }

  private stepLine(step: OperationStep, mark: string): string {
    const colors = this.cli.noteColors
    const name = words(step.name)
    switch (step.state) {
      case 'done': {
        const tookMs = Date.parse(step.completed_at) - Date.parse(step.started_at)
        return `  ${colors.green('✓')} ${name}${tookMs >= 1000 ? ` ${colors.dim(durationText(tookMs))}` : ''}`
      }
      case 'running':
        return `  ${mark} ${name}`
      case 'failed':
        return `  ${colors.red('✗')} ${name}`
      case 'undone':
        return `  ${colors.yellow('↩')} ${name}`
      default:
        return colors.dim(`    ${name}`)
    }
  }
}
