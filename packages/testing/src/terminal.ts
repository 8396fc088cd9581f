import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

export interface TerminalOptions {
  folder: string
  env: Record<string, string>
  /** The program that `run` starts. */
  program: string
  columns?: number
}

/** Opens a real terminal in tmux: input is sent as key presses, and output is read from the screen. */
export function openTerminal({ folder, env, program, columns = 100 }: TerminalOptions) {
  const socket = join(folder, `tmux-${columns}`)
  const tmux = (...words: string[]) => {
    const { status, stdout, stderr } = spawnSync('tmux', ['-S', socket, ...words], { env, encoding: 'utf8' })
    if (status !== 0) throw new Error(`tmux ${words[0]}: ${stderr}`)
    return stdout
  }
  // No history file, because bash could still write it while the test removes the folder.
  const shell = `exec env HISTFILE= PS1='> ' bash --norc --noprofile`
  tmux('-f', '/dev/null', 'new-session', '-d', '-x', String(columns), '-y', '40', '-c', folder, shell)

  const screen = () => tmux('capture-pane', '-p')
  const colors = () => tmux('capture-pane', '-p', '-e')

  /** Waits until the screen matches, and returns it. */
  async function see(wanted: RegExp, limitMs = 120_000): Promise<string> {
    const giveUpAt = Date.now() + limitMs
    for (;;) {
      const text = screen()
      if (wanted.test(text)) return text
      if (Date.now() > giveUpAt) throw new Error(`the screen never showed ${wanted}:\n${text}`)
      await pause(50)
    }
  }

  return {
    screen,
    colors,
    see,
    /** Starts a command on a clean screen. */
    run(words: string, environment = ''): void {
      // Clear the screen first, so that `see` cannot match the output of the previous command.
      tmux('send-keys', '-R')
      tmux('send-keys', '-l', '--', `${environment} ${program} ${words}; echo "ended with $?"`)
      tmux('send-keys', 'Enter')
    },
    press: (...keys: string[]) => tmux('send-keys', ...keys),
    type: (text: string) => tmux('send-keys', '-l', '--', text),
    close: () => void spawnSync('tmux', ['-S', socket, 'kill-server']),
  }
}
