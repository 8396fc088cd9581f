/** How times are told to the outside, from a column or from JSON; an unset one is empty. */
export const time = (at: Date | string | null): string =>
  at === null ? '' : (typeof at === 'string' ? new Date(at) : at).toISOString()
