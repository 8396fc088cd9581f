// Runs the server of a checkout in its own process.
import { spawn } from 'node:child_process'
import { join } from 'node:path'

export class ServerProcess {
  #child
  #output = ''
  #ended
  #onOutput = () => {}

  constructor(checkout, args, env = {}) {
    const program = join(checkout, 'packages/server/dist/main.js')
    this.#child = spawn(process.execPath, [program, '--port', '0', ...args], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const collect = (chunk) => {
      this.#output += chunk
      this.#onOutput()
    }
    this.#child.stdout.setEncoding('utf8').on('data', collect)
    this.#child.stderr.setEncoding('utf8').on('data', collect)
    this.#ended = new Promise((resolve) => this.#child.once('close', resolve))
  }

  /** Waits until the server accepts requests. */
  async ready() {
    await new Promise((resolve, reject) => {
      this.#onOutput = () => /"msg":"ready"/.test(this.#output) && resolve()
      this.#onOutput()
      void this.#ended.then(() => reject(new Error(`the server ended: ${this.#output}`)))
    })
    this.url = /Console +(\S+)/.exec(this.#output)[1]
  }

  /** The error lines of the server's log. */
  get errors() {
    return this.#output.split('\n').filter((line) => /"level":[56]0/.test(line))
  }

  /** Stops the server and returns its exit code. */
  stop() {
    if (this.#child.exitCode === null) this.#child.kill('SIGTERM')
    return this.#ended
  }
}
