const storageKey = 'slipway-ssh-key'

/** A pasted key often brings a line end along. */
export const keyOf = (text: string): string => text.trim()
export const rememberedKey = (): string => localStorage.getItem(storageKey) ?? ''
export const rememberKey = (text: string): void => localStorage.setItem(storageKey, keyOf(text))
