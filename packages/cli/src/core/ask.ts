import type { Option } from '@clack/prompts'
import { Interrupted, UsageError } from '../errors/cli-error.ts'
import type { Cli } from './cli.ts'

/** Questions are written to stderr, because stdout is only for results. */
const streamsOf = ({ io }: Cli) => ({ input: io.stdin, output: io.stderr })

interface Choice {
  value: string
  label?: string
  hint?: string
}

export async function askText(
  cli: Cli,
  message: string,
  options: { initial?: string; placeholder?: string; validate?: (text: string) => string | undefined } = {},
): Promise<string> {
  const { text } = await import('@clack/prompts')
  const { initial, placeholder, validate } = options
  const answer = await text({
    message,
    ...streamsOf(cli),
    ...(initial !== undefined && { initialValue: initial }),
    ...(placeholder !== undefined && { placeholder }),
    ...(validate && { validate: (value) => validate(value ?? '') }),
  })
  return unlessCancelled(answer)
}

export async function askSecret(cli: Cli, message: string): Promise<string> {
  const { password } = await import('@clack/prompts')
  return unlessCancelled(await password({ message, ...streamsOf(cli) }))
}

export async function askChoice(
  cli: Cli,
  message: string,
  choices: Choice[],
  initial?: string,
): Promise<string> {
  const { select } = await import('@clack/prompts')
  const options = choices as Option<string>[]
  return unlessCancelled(
    await select({
      message,
      ...streamsOf(cli),
      options,
      maxItems: 10,
      ...(initial !== undefined && { initialValue: initial }),
    }),
  )
}

export async function askYes(cli: Cli, message: string, initial = false): Promise<boolean> {
  const { confirm } = await import('@clack/prompts')
  return unlessCancelled(await confirm({ message, ...streamsOf(cli), initialValue: initial }))
}

/** Asks before a destructive action. Without a terminal, `--yes` is required. */
export async function confirmLoss(cli: Cli, question: string, yes: boolean | undefined): Promise<void> {
  if (yes) return
  if (!cli.isInteractive) throw new UsageError('This command needs a confirmation. Add --yes.')
  if (!(await askYes(cli, question))) throw new Interrupted()
}

function unlessCancelled<T>(answer: T): Exclude<T, symbol> {
  if (typeof answer === 'symbol') throw new Interrupted()
  return answer as Exclude<T, symbol>
}
