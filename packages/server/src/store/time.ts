/** How times are told to the outside; an unset one is empty. */
export const time = (at: Date | null): string => at?.toISOString() ?? ''
