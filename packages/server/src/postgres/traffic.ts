/** Counts what one process sends to PostgreSQL. `/metrics` shows the counts, and a test limits what a creation may send. */
export class Traffic {
  statements = 0
  roundTrips = 0
  /** Transactions, and statements outside of a transaction. */
  commits = 0
  /** Gets the name of each statement; for a round trip or a commit, the name of the first statement in it. */
  observer: ((what: 'statement' | 'round trip' | 'commit', name: string) => void) | undefined

  sent(name = ''): void {
    this.statements++
    this.observer?.('statement', name)
  }

  waited(firstName = ''): void {
    this.roundTrips++
    this.observer?.('round trip', firstName)
  }

  committed(firstName = ''): void {
    this.commits++
    this.observer?.('commit', firstName)
  }
}

/** The traffic of one transaction: statements sent in one turn of the event loop are one round trip. */
export class TransactionTraffic {
  /** The name of the first statement; undefined until a statement is sent. */
  firstName: string | undefined
  readonly #traffic: Traffic
  #isSending = false

  constructor(traffic: Traffic) {
    this.#traffic = traffic
  }

  sent(name = ''): void {
    this.firstName ??= name
    this.#traffic.sent(name)
    this.#countRoundTrip(name)
  }

  committing(): void {
    this.#countRoundTrip('COMMIT')
  }

  committed(): void {
    this.#traffic.committed(this.firstName)
  }

  #countRoundTrip(name: string): void {
    if (this.#isSending) return
    this.#isSending = true
    this.#traffic.waited(name)
    process.nextTick(() => {
      this.#isSending = false
    })
  }
}
