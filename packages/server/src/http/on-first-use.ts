/** What takes long to make and is not always needed is made when it is, once: a start does not wait for it. */
export function onFirstUse<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
