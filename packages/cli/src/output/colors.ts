import picocolors from 'picocolors'
import type { GlobalFlags } from '../core/settings.ts'

export type Palette = ReturnType<typeof picocolors.createColors>

/** Colours only where a person looks: on a terminal, unless NO_COLOR or --no-color says otherwise. */
export function colorsFor(stream: { isTTY?: boolean }, flags: GlobalFlags, env: NodeJS.ProcessEnv): Palette {
  const isWanted = flags.color !== false && !env.NO_COLOR && env.TERM !== 'dumb'
  return picocolors.createColors(Boolean(stream.isTTY) && isWanted)
}

/** A state in the colour of what it means: well, under way, at rest, trouble. */
export function paintState(colors: Palette, state: string): string {
  const word = state.replace(/^STATE_/, '').toLowerCase()
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
