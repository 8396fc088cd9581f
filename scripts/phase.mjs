let isLineOpen = false

/** Runs a slow part of a command, and prints its title and duration on standard error. */
export function phase(title, run) {
  const startedAt = performance.now()
  process.stderr.write(`${title} … `)
  isLineOpen = true
  const end = (result) => {
    process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`)
    isLineOpen = false
    return result
  }
  const result = run()
  return result instanceof Promise ? result.then(end) : end(result)
}

/** Prints a message on a new line and ends the command. */
export function exitWithMessage(message) {
  console.error(isLineOpen ? `failed\n${message}` : message)
  process.exit(1)
}
