import { readdirSync, readFileSync } from 'node:fs'

/** Returns the kernel's statistics for a process; undefined if there is no such process or no /proc. */
function statOf(pid: number | 'self') {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the program's name in parentheses, which may contain any character.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ticks = (index: number) => Number(fields[index])
    return { parent: Number(fields[1]), ownTicks: ticks(11) + ticks(12), reapedTicks: ticks(13) + ticks(14) }
  } catch {
    return undefined
  }
}

/** Linux reports these times in hundredths of a second, whatever its timer frequency. */
const msPerTick = 10

/** Returns the CPU time of a process and all its threads so far, in milliseconds. */
export const cpuMs = (pid: number): number => (statOf(pid)?.ownTicks ?? 0) * msPerTick

/** Returns the CPU time of this process's children that have ended, in milliseconds. */
export const endedChildrenCpuMs = (): number => (statOf('self')?.reapedTicks ?? 0) * msPerTick

/**
 * Returns the CPU time of a process and its children so far, in milliseconds. When a child ends, its time is
 * added to its parent's.
 */
export function familyCpuMs(pid: number): number {
  for (;;) {
    const before = statOf(pid)
    const children = childrenOf(pid).reduce((sum, child) => sum + cpuMs(child), 0)
    const after = statOf(pid)
    // A child that ended in between would be counted twice or not at all.
    if (before?.reapedTicks !== after?.reapedTicks) continue
    return after ? (after.ownTicks + after.reapedTicks) * msPerTick + children : 0
  }
}

export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((each) => statOf(each)?.parent === pid)
}

/** Returns the name of the program that a process runs. */
export function programOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return ''
  }
}

/** Returns the current or the peak memory of a process. */
export function memoryMb(pid: number, which: 'now' | 'most'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const [, kb = '0'] =
    new RegExp(`^${which === 'now' ? 'VmRSS' : 'VmHWM'}:\\s+(\\d+)`, 'm').exec(status) ?? []
  return Number(kb) / 1024
}
