/** The URL search parameters. All are strings, and empty ones are omitted. */
export type Search = Record<string, string | undefined>
export const readSearch = (search: Record<string, unknown>): Search =>
  Object.fromEntries(Object.entries(search).map(([name, value]) => [name, String(value)]))
