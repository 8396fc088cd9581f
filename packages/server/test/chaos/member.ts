import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { readyLine, serverProgram } from '@slipway/testing/launcher.ts'
import { type Program, startProgram } from '@slipway/testing/program.ts'
import type { Wire } from '@slipway/testing/wire.ts'
import type { History } from './history.ts'

const restartMs = 200
const shiftedClock = pathToFileURL(join(import.meta.dirname, 'shifted-clock.mjs')).href

export interface MemberOptions {
  name: string
  role: 'api' | 'worker'
  /** The port on which an API process listens after every restart. */
  port: number
  configFile: string
  dataDir: string
  wire: Wire
  /** How far the clock of the process is off. */
  clockShiftMs: number
  history: History
}

/** One process of the service, which a supervisor restarts whenever it has ended. */
export class Member {
  readonly options: MemberOptions
  /** The lines printed since the first start, across restarts. */
  readonly logLines: string[] = []
  /** Empty until the first start. */
  url = ''
  #program: Program | undefined
  #clockShiftMs: number
  #isKilled = false
  #isStopping = false
  #isReady = false
  #supervision: Promise<void> | undefined

  constructor(options: MemberOptions) {
    this.options = options
    this.#clockShiftMs = options.clockShiftMs
  }

  get name(): string {
    return this.options.name
  }

  get isReady(): boolean {
    return this.#isReady
  }

  get isStarted(): boolean {
    return this.#supervision !== undefined
  }

  start(): void {
    this.#supervision = this.#supervise()
  }

  /** Ends the process like a crash or a power cut. The supervisor restarts it with this clock. */
  async kill(clockShiftMs = this.#clockShiftMs): Promise<void> {
    this.#clockShiftMs = clockShiftMs
    this.#isKilled = true
    // A process counts as ended when its output has been read.
    this.#program?.resumeReading()
    await this.#program?.end('SIGKILL')
  }

  /** Stops reading the log until the returned function is called or the process is killed. */
  pauseLog(): () => void {
    const program = this.#program
    program?.pauseReading()
    return () => program?.resumeReading()
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    if (this.#program && !this.#program.hasExited) this.#program.signal(signal)
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await this.kill()
    await this.#supervision
  }

  async #supervise(): Promise<void> {
    const { name, history } = this.options
    while (!this.#isStopping) {
      this.#isKilled = false
      const program = this.#launch()
      this.#program = program
      await program.until(readyLine).then(
        (output) => this.#recordReady(output),
        () => {},
      )
      const wasReady = this.#isReady
      const { code, output, errors } = await program.ended()
      this.#isReady = false
      this.logLines.push(...output.split('\n'), ...errors.split('\n'))
      // A start without a database fails and is retried; a running service never exits on its own.
      if (!this.#isKilled && wasReady)
        history.violation(`${name} exited unexpectedly with ${code}: ${errors.slice(-2_000)}`)
      else if (!this.#isKilled) history.note(`${name} could not start: ${errors.trim().slice(-300)}`)
      await delay(restartMs)
    }
  }

  #launch(): Program {
    const { role, port, configFile, dataDir, wire } = this.options
    const args = ['--role', role, '--port', String(port), '--config', configFile, '--data-dir', dataDir]
    return startProgram(process.execPath, [serverProgram, ...args], {
      env: {
        DATABASE_URL: wire.url,
        ...(this.#clockShiftMs !== 0 && {
          NODE_OPTIONS: `--import=${shiftedClock}`,
          CHAOS_CLOCK_SHIFT_MS: String(this.#clockShiftMs),
        }),
      },
    })
  }

  #recordReady(output: string): void {
    this.#isReady = true
    const { role, history, name } = this.options
    history.note(`${name} is ready`)
    if (role === 'api') this.url ||= /http:\/\/127\.0\.0\.1:\d+/.exec(output)![0]
  }
}
