let isLineOpen = false

/** Runs a part of a command that takes seconds: one line on standard error says what it is, and how long it took. */
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

/** Ends the command with a message, on a line of its own. */
export function leave(message) {
  console.error(isLineOpen ? `failed\n${message}` : message)
  process.exit(1)
}
