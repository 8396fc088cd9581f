import { type ChildProcess, spawn } from 'node:child_process'

export interface ProgramOptions {
  /** The complete environment, except PATH; nothing else is inherited. */
  env?: NodeJS.ProcessEnv
  cwd?: string
  uid?: number
  gid?: number
  /** Standard input; empty by default. */
  input?: string
}

export interface Ended {
  code: number | null
  output: string
  errors: string
}

/** Starts a program in its own process group, as a shell does for a foreground job. */
export function startProgram(command: string, args: string[], options: ProgramOptions = {}): Program {
  const { input, env = {}, ...rest } = options
  const child = spawn(command, args, {
    ...rest,
    detached: true,
    env: { PATH: process.env.PATH, ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  // A program may end without reading all its input.
  child.stdin?.on('error', () => {})
  child.stdin?.end(input)
  return new Program(child)
}

/** A real process, with its output and exit code. */
export class Program {
  readonly #child: ChildProcess
  readonly #closed: Promise<number | null>
  #output = ''
  #errors = ''
  #isClosed = false
  #waiting: (() => void)[] = []

  constructor(child: ChildProcess) {
    this.#child = child
    this.#closed = new Promise((resolve, reject) => child.once('close', resolve).once('error', reject))
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text
      this.#wake()
    })
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text
      this.#wake()
    })
    child.once('close', () => {
      this.#isClosed = true
      this.#wake()
    })
  }

  #wake(): void {
    for (const resume of this.#waiting.splice(0)) resume()
  }

  get pid(): number {
    return this.#child.pid!
  }

  /** The complete lines of standard output. */
  get lines(): string[] {
    return this.#output.split('\n').slice(0, -1)
  }

  get hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** Waits until standard output matches, and returns it. */
  until(expected: RegExp): Promise<string> {
    return this.#wait(() => this.#output, expected)
  }

  /** Waits until standard error matches, and returns it. */
  untilErrors(expected: RegExp): Promise<string> {
    return this.#wait(() => this.#errors, expected)
  }

  async #wait(text: () => string, expected: RegExp): Promise<string> {
    while (!expected.test(text())) {
      // A process may end before all its output has arrived.
      if (this.#isClosed) throw new Error(`the program ended early: ${this.#output}${this.#errors}`)
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    return text()
  }

  /** Waits for a line that begins with this word, and returns the rest of the line. */
  async line(word: string): Promise<string> {
    await this.until(new RegExp(`^${word}( .*)?\n`, 'm'))
    const found = this.lines.find((line) => line.startsWith(`${word} `) || line === word)!
    return found.slice(word.length + 1)
  }

  /** Closes the reading end of the output, so that later writes fail. */
  stopReading(): void {
    this.#child.stdout!.destroy()
    this.#child.stderr!.destroy()
  }

  /** Stops reading the output, so that the pipe fills up. */
  pauseReading(): void {
    this.#child.stdout!.pause()
  }

  resumeReading(): void {
    this.#child.stdout!.resume()
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Sends the signal unless the process has exited, and returns the exit code. */
  end(signal: NodeJS.Signals): Promise<number | null> {
    if (!this.hasExited) this.signal(signal)
    return this.#closed
  }

  /** Sends the signal to the whole process group, like Ctrl-C. */
  endGroup(signal: NodeJS.Signals): Promise<number | null> {
    process.kill(-this.pid, signal)
    return this.#closed
  }

  /** Kills the process and everything in its process group. */
  async kill(): Promise<void> {
    try {
      process.kill(-this.pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
    await this.#closed
  }

  async ended(): Promise<Ended> {
    const code = await this.#closed
    return { code, output: this.#output, errors: this.#errors }
  }
}
