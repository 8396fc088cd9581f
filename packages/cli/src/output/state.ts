/** Returns the word for a state of the API: `STATE_RUNNING` → `running`. A VM in STATE_SHUTOFF is stopped. */
export function stateWord(state: string): string {
  const word = state.replace(/^STATE_/, '').toLowerCase()
  return word === 'shutoff' ? 'stopped' : word
}
