/** Clients of the compatible API get times in whole seconds. */
export const inSeconds = (timestamp: string): string => timestamp.replace(/\.\d+Z$/, 'Z')
