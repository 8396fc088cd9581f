import type { OperationStep } from '@slipway/sdk'
import { durationText, words } from '../output/text.ts'
import { safeText } from '../output/untrusted.ts'
import type { Cli } from './cli.ts'

interface ProgressView {
  show(steps: OperationStep[]): void
  end(outcome: Outcome): void
}

type Outcome = 'done' | 'failed' | 'continues'

/**
 * Returns a view that redraws the progress on a terminal, or writes a line per step to a log. With JSON or
 * YAML output, progress is shown only on a terminal, because programs read errors from stderr.
 */
export function progressView(cli: Cli, title: string): ProgressView | undefined {
  if (cli.flags.quiet) return undefined
  if (cli.io.stderr.isTTY) return new StepView(cli, title)
  return cli.format.kind === 'table' ? new StepLines(cli, title) : undefined
}

/** Writes a line for each step when it ends. */
class StepLines implements ProgressView {
  private readonly cli: Cli
  private readonly title: string
  private readonly written = new Map<string, string>()

  constructor(cli: Cli, title: string) {
    this.cli = cli
    this.title = title
  }

  show(steps: OperationStep[]): void {
    for (const { name, state } of steps) {
      if (state === 'pending' || state === 'running' || this.written.get(name) === state) continue
      this.written.set(name, state)
      this.cli.say(`${this.title}: ${words(name)} ${state}`)
    }
  }

  end(): void {}
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']

/** Draws a title with a spinner, and the steps below it. Each drawing replaces the previous one. */
class StepView implements ProgressView {
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

  end(outcome: Outcome): void {
    clearInterval(this.timer)
    const { green, red, yellow } = this.cli.noteColors
    this.draw({ done: green('✓'), failed: red('✗'), continues: yellow('…') }[outcome])
  }

  private draw(mark: string): void {
    const colors = this.cli.noteColors
    const elapsed = colors.dim(durationText(Date.now() - this.startedAt))
    const lines = [`${mark} ${this.title} ${elapsed}`, ...this.steps.map((step) => this.stepLine(step, mark))]
    const back = this.drawnLines > 0 ? `\x1b[${this.drawnLines}A` : ''
    this.cli.io.stderr.write(back + lines.map((line) => `\r\x1b[2K${safeText(line)}\n`).join(''))
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
