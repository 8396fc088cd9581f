import { openTerminal as openTerminalOf, type TerminalOptions } from '@slipway/testing/terminal.ts'
import { binary } from './cli.ts'

/** A terminal in which `slipway` is the real executable. */
export const openTerminal = (options: Omit<TerminalOptions, 'program'>) =>
  openTerminalOf({ ...options, program: `node ${binary}` })
