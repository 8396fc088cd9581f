import { readdirSync, readFileSync } from 'node:fs'

/** What the kernel knows of a process; undefined when there is none, or no /proc. */
function statOf(pid: number | 'self') {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the program's name in brackets, which may hold anything.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ticks = (index: number) => Number(fields[index])
    return { parent: Number(fields[1]), ownTicks: ticks(11) + ticks(12), reapedTicks: ticks(13) + ticks(14) }
  } catch {
    return undefined
  }
}

/** Linux counts in hundredths of a second whatever its own clock does. */
const msPerTick = 10

/** CPU milliseconds so far of a process with all of its threads. */
export const cpuMs = (pid: number): number => (statOf(pid)?.ownTicks ?? 0) * msPerTick

/** CPU milliseconds so far of this process's children that have ended. */
export const endedChildrenCpuMs = (): number => (statOf('self')?.reapedTicks ?? 0) * msPerTick

/** CPU milliseconds so far of a process and its children; one that ends meanwhile goes on in its parent's account. */
export function familyCpuMs(pid: number): number {
  for (;;) {
    const before = statOf(pid)
    const children = childrenOf(pid).reduce((sum, child) => sum + cpuMs(child), 0)
    const after = statOf(pid)
    // One that ended in between would be counted twice or not at all.
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

/** The name of the program that a process runs. */
export function programOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return ''
  }
}

/** The memory that a process has now, or the most that it ever had. */
export function memoryMb(pid: number, which: 'now' | 'most'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const [, kb = '0'] =
    new RegExp(`^${which === 'now' ? 'VmRSS' : 'VmHWM'}:\\s+(\\d+)`, 'm').exec(status) ?? []
  return Number(kb) / 1024
}
