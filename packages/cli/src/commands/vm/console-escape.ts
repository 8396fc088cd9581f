const [tilde, dot, returnKey, newline] = [0x7e, 0x2e, 0x0d, 0x0a]

/** Finds `~.` at the beginning of a line of input, as ssh does. `~~` there is one tilde. */
export class EscapeFilter {
  #isAtStart = true
  #holdsTilde = false

  /** Returns what is to be sent. */
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
