import { spawn } from 'node:child_process'
import { EngineError } from '../engine.ts'

export interface CommandOptions {
  cwd?: string
  signal?: AbortSignal
  timeoutMs?: number
}

/** Runs a program to its end and returns its standard output; its standard error becomes the failure's message. */
export function run(program: string, args: string[], options: CommandOptions = {}): Promise<string> {
  const limit = AbortSignal.timeout(options.timeoutMs ?? 60_000)
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: { ...process.env, LC_ALL: 'C', PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
      stdio: ['ignore', 'pipe', 'pipe'],
      signal: options.signal ? AbortSignal.any([options.signal, limit]) : limit,
      killSignal: 'SIGKILL',
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      stdout += chunk
    })
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      stderr += chunk
    })
    child.on('error', (error: NodeJS.ErrnoException) => {
      const reason = error.code === 'ENOENT' ? 'is not installed' : `did not finish: ${error.message}`
      reject(new EngineError('unavailable', `${program} ${reason}`, { cause: error }))
    })
    child.on('close', (code) => {
      if (code === 0) resolve(stdout)
      else
        reject(new EngineError('unavailable', `${program} ${args[0]} failed: ${lastWords(stderr || stdout)}`))
    })
  })
}

/** What a program of the host said last, with the names of its files but not where they are: tenants may read it. */
export function lastWords(output: string): string {
  return lastLines(output).replace(/(?<![\w.])(?:\/[^\s/:'",;()]+)+\/([^\s/:'",;()]*)/g, '$1')
}

export function lastLines(text: string, count = 5): string {
  return text.trim().split('\n').slice(-count).join('\n')
}
