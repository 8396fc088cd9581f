/** What one process has asked of PostgreSQL. `/metrics` shows it, and a test holds a creation to its budget. */
export class Traffic {
  statements = 0
  roundTrips = 0
  /** Transactions, and statements that stood by themselves. */
  commits = 0
  /** Is told the name of each statement, and of each commit the name of the first statement in it. */
  observer: ((what: 'statement' | 'commit', name: string) => void) | undefined

  sent(name = ''): void {
    this.statements++
    this.roundTrips++
    this.observer?.('statement', name)
  }

  committed(firstName = ''): void {
    this.commits++
    this.observer?.('commit', firstName)
  }
}
