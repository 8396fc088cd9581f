const [tilde, dot, returnKey, newline] = [0x7e, 0x2e, 0x0d, 0x0a]

/** Detects `~.` at the beginning of an input line, as ssh does. `~~` at the same position sends one tilde. */
export class EscapeFilter {
  #isAtStart = true
  #holdsTilde = false

  /** Returns the bytes to send. */
  take(input: Buffer): { bytes: Buffer; isLeaving: boolean } {
    const sent: number[] = []
    for (const byte of input) {
      if (this.#holdsTilde) {
        this.#holdsTilde = false
        if (byte === dot) return { bytes: Buffer.from(sent), isLeaving: true }
        sent.push(tilde)
        this.#isAtStart = false
        if (byte === tilde) continue
      } else if (this.#isAtStart && byte === tilde) {
        this.#holdsTilde = true
        continue
      }
      sent.push(byte)
      this.#isAtStart = byte === returnKey || byte === newline
    }
    return { bytes: Buffer.from(sent), isLeaving: false }
  }
}
