// Kept for the suites of the console until they import it from there.
export * from '@slipway/testing/database.ts'
