/** Makes a value once, when it is first needed, so that the start of the server does not wait for it. */
export function onFirstUse<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
