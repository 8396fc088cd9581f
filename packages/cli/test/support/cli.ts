import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { startProgram } from '@slipway/testing/program.ts'
import { root } from '@slipway/testing/root.ts'
import { runProgram } from '../../src/program.ts'

export const binary = join(root, 'packages/cli/bin/slipway.js')

export interface Run {
  code: number
  stdout: string
  stderr: string
}

export interface RunOptions {
  env?: Record<string, string>
  input?: string
  cwd?: string
  /** Makes `slipway` print notes, which are printed only if stderr is a terminal. */
  printsNotes?: boolean
}

/** Creates a home for a test file, so that no context, key or variable of the developer is used. */
export function freshHome() {
  const home = mkdtempSync(join(tmpdir(), 'slipway-cli-'))
  const base = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    XDG_CONFIG_HOME: join(home, 'config'),
    TZ: 'UTC',
    LANG: 'C.UTF-8',
  }

  /** Runs a command line in this process, with its own streams and environment. */
  async function slipway(words: string[], options: RunOptions = {}): Promise<Run> {
    const [stdout, stderr] = [new CapturedOutput(), new CapturedOutput()]
    stderr.isTTY = options.printsNotes === true
    const code = await runProgram(words, {
      stdin: Readable.from(options.input ? [options.input] : []),
      stdout,
      stderr,
      env: { ...base, ...options.env },
      cwd: options.cwd ?? home,
    })
    return { code, stdout: stdout.text, stderr: stderr.text }
  }

  /** Runs the real executable to its end, for behavior of the process such as signals and child processes. */
  async function executable(words: string[], options: RunOptions = {}): Promise<Run> {
    const program = startProgram(process.execPath, [binary, ...words], {
      cwd: options.cwd ?? home,
      env: { ...base, ...options.env },
      input: options.input ?? '',
    })
    const { code, output, errors } = await program.ended()
    return { code: code ?? -1, stdout: output, stderr: errors }
  }

  return { home, base, slipway, executable, remove: () => rmSync(home, { recursive: true, force: true }) }
}

/** Keeps the written text. */
class CapturedOutput extends Writable {
  text = ''
  isTTY = false

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString('utf8')
    done()
  }
}
