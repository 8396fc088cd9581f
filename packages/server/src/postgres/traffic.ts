/** What one process has asked of PostgreSQL. `/metrics` shows it, and a test holds a creation to its budget. */
export class Traffic {
  statements = 0
  roundTrips = 0
  /** Transactions, and statements that stood by themselves. */
  commits = 0
  /** Is told the name of each statement, and of each round trip and commit the name of the first statement in it. */
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

/** The traffic of one transaction: what it sends in one turn of the event loop is one round trip. */
export class TransactionTraffic {
  /** Undefined until it has sent anything. */
  firstName: string | undefined
  readonly #traffic: Traffic
  #isSending = false

  constructor(traffic: Traffic) {
    this.#traffic = traffic
  }

  sent(name = ''): void {
    this.firstName ??= name
    this.#traffic.sent(name)
    this.#waits(name)
  }

  committing(): void {
    this.#waits('COMMIT')
  }

  committed(): void {
    this.#traffic.committed(this.firstName)
  }

  #waits(name: string): void {
    if (this.#isSending) return
    this.#isSending = true
    this.#traffic.waited(name)
    process.nextTick(() => {
      this.#isSending = false
    })
  }
}
