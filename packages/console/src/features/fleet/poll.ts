/** Operators have no event stream of their own in the page: what moves is asked for often, what is set by hand less. */
export const fleetPollMs = 2_000
export const settingsPollMs = 10_000
