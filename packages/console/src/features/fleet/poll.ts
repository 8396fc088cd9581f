/** Operator pages have no event stream and poll: states often, settings less often. */
export const fleetPollMs = 2_000
export const settingsPollMs = 10_000
/** For lists of tenants' requests: each read is recorded in the audit log of every tenant shown. */
export const recordedPollMs = 60_000
