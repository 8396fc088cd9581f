/** The bounds of a VM's time to live, and the choices that people are offered. */
export const minTtlSeconds = 300
export const maxTtlSeconds = 2_592_000

export const ttlChoicesHours = [1, 4, 12, 24, 72, 168, 720] as const

export const expiryActions = ['stop', 'delete'] as const
export type ExpiryAction = (typeof expiryActions)[number]
