/**
 * Returns the default image: the only one, or the newest Ubuntu if there are several. Within one Ubuntu release the
 * image for GPUs comes first. Undefined if there are several images and none is an Ubuntu.
 */
export function defaultImage(names: readonly string[]): string | undefined {
  const candidates = names.length === 1 ? names : names.filter((name) => name.startsWith('ubuntu'))
  return candidates.toSorted((one, other) => rank(other) - rank(one))[0]
}

function rank(name: string): number {
  const release = Number(/^ubuntu-?(\d+\.\d+)/.exec(name)?.[1] ?? 0)
  const isForGpus = /nvidia|cuda/.test(name)
  const isLatest = name.endsWith(':latest')
  return release * 100 + (isForGpus ? 2 : 0) + (isLatest ? 1 : 0)
}
