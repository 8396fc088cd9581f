/** Operator pages have no event stream and poll: states often, settings less often. */
export const fleetPollMs = 2_000
export const settingsPollMs = 10_000
