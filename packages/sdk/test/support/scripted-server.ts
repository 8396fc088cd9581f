// Kept for the suites of the CLI until they import it from there.
export * from '@slipway/testing/scripted-server.ts'
