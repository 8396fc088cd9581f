import picocolors from 'picocolors'
import { stateWord } from './state.ts'

export type Palette = ReturnType<typeof picocolors.createColors>

/** Enables colors only on a terminal, and not with NO_COLOR or --no-color. */
export function colorsFor(
  stream: { isTTY?: boolean },
  flags: { color?: boolean },
  env: NodeJS.ProcessEnv,
): Palette {
  const isWanted = flags.color !== false && !env.NO_COLOR && env.TERM !== 'dumb'
  return picocolors.createColors(Boolean(stream.isTTY) && isWanted)
}

/** Colors a state: green for good, yellow for in progress, red for problems, and none for other states. */
export function paintState(colors: Palette, state: string): string {
  const word = stateWord(state)
  if (/^(running|active|available|succeeded|up|free|delivered|paid|done|true)$/.test(word))
    return colors.green(word)
  if (
    /^(creating|starting|stopping|resetting|deleting|updating|resizing|in_progress|pending|draining|invited)$/.test(
      word,
    )
  ) {
    return colors.yellow(word)
  }
  if (/^(crashed|unreachable|failed|down|quarantined|gone)$/.test(word)) return colors.red(word)
  return word
}
