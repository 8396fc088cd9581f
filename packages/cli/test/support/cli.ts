import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProgram } from '@slipway/testing/program.ts'
import { root } from '@slipway/testing/root.ts'

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
}

/** A home of its own for each test file: no context, no key and no environment of the developer gets in. */
export function freshHome() {
  const home = mkdtempSync(join(tmpdir(), 'slipway-cli-'))
  const base = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    XDG_CONFIG_HOME: join(home, 'config'),
    TZ: 'UTC',
    LANG: 'C.UTF-8',
  }

  /** Runs the real binary to its end. */
  async function slipway(words: string[], options: RunOptions = {}): Promise<Run> {
    const program = startProgram(process.execPath, [binary, ...words], {
      cwd: options.cwd ?? home,
      env: { ...base, ...options.env },
      input: options.input ?? '',
    })
    const { code, output, errors } = await program.ended()
    return { code: code ?? -1, stdout: output, stderr: errors }
  }

  return { home, base, slipway, remove: () => rmSync(home, { recursive: true, force: true }) }
}
