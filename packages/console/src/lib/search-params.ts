/** Everything in the address bar is a short text, left out when empty. */
export type Search = Record<string, string | undefined>
export const readSearch = (search: Record<string, unknown>): Search =>
  Object.fromEntries(Object.entries(search).map(([name, value]) => [name, String(value)]))
