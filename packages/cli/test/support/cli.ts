import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../../../sdk/test/support/root.ts'

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
  function slipway(words: string[], options: RunOptions = {}): Promise<Run> {
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [binary, ...words], {
        cwd: options.cwd ?? home,
        env: { ...base, ...options.env },
      })
      const run: Run = { code: -1, stdout: '', stderr: '' }
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        run.stdout += text
      })
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        run.stderr += text
      })
      child.stdin.end(options.input ?? '')
      child.once('error', reject)
      child.once('close', (code) => resolve({ ...run, code: code ?? -1 }))
    })
  }

  return { home, base, slipway, remove: () => rmSync(home, { recursive: true, force: true }) }
}
