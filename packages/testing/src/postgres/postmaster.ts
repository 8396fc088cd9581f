import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../eventually.ts'

/** Returns the folder of the PostgreSQL of a data directory, or undefined before the first start. */
export function homeOf(dataDir: string): string | undefined {
  try {
    const note = readFileSync(join(dataDir, 'postgres-home'), 'utf8').trim()
    return note.startsWith('/') ? note : join(dataDir, note)
  } catch {
    return undefined
  }
}

export function socketDirOf(dataDir: string): string {
  return readFileSync(join(dataDir, 'postgres-socket'), 'utf8').split('\n')[1]!
}

export function pidFileOf(dataDir: string): string {
  return join(homeOf(dataDir)!, 'data/postmaster.pid')
}

/** Returns the pid, or undefined if PostgreSQL is not running or is a zombie. */
export function postmasterPid(dataDir: string): number | undefined {
  try {
    const pid = Number(readFileSync(pidFileOf(dataDir), 'utf8').split('\n')[0])
    return isRunning(pid) ? pid : undefined
  } catch {
    return undefined
  }
}

/** Returns the kernel's letter for the state of a process, or undefined if there is no such process. */
export function stateOf(pid: number): string | undefined {
  try {
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
  } catch {
    return undefined
  }
}

function isRunning(pid: number): boolean {
  const state = stateOf(pid)
  return state !== undefined && state !== 'Z'
}

export async function killAndWait(pid: number, signal: NodeJS.Signals): Promise<void> {
  process.kill(pid, signal)
  await eventually(async () => !isRunning(pid), 60_000)
}
