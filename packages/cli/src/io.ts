import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { UsageError } from './errors/cli-error.ts'

/** The streams and the environment of one run of the CLI. Tests replace them. */
export interface Io {
  readonly stdin: Readable & { isTTY?: boolean }
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly env: NodeJS.ProcessEnv
  /** Relative paths start here. */
  readonly cwd: string
}

export type OutputStream = Writable & { isTTY?: boolean; columns?: number }

/** Returns the width in columns, or undefined if the stream is not a terminal. */
export const widthOf = ({ isTTY, columns }: OutputStream): number | undefined => (isTTY ? columns : undefined)

export const homeOf = (env: NodeJS.ProcessEnv): string => env.HOME || homedir()

/** Reads a file; `-` means standard input. */
export async function readTextFile(io: Io, path: string): Promise<string> {
  try {
    return path === '-' ? await text(io.stdin) : await readFile(resolve(io.cwd, path), 'utf8')
  } catch (error) {
    throw new UsageError(`Cannot read ${path}: ${(error as Error).message}`)
  }
}
