/** How times show in answers: the empty string when unset. */
export const timestamp = (at: Date | null): string => at?.toISOString() ?? ''
