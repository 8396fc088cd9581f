/**
 * Returns the default image: the only image, or the newest Ubuntu image if there are several. For the same
 * Ubuntu release, an image for GPUs is preferred. Undefined if there are several images and none is Ubuntu.
 */
export function defaultImage(names: readonly string[]): string | undefined {
  const candidates = names.length === 1 ? names : names.filter((name) => name.startsWith('ubuntu'))
  return candidates.toSorted((a, b) => rank(b) - rank(a))[0]
}

function rank(name: string): number {
  const release = Number(/^ubuntu-?(\d+\.\d+)/.exec(name)?.[1] ?? 0)
  const isForGpus = /nvidia|cuda/.test(name)
  const isLatest = name.endsWith(':latest')
  return release * 100 + (isForGpus ? 2 : 0) + (isLatest ? 1 : 0)
}
