/** Returns what is wrong with a webhook URL; undefined if it is valid. */
export const urlProblem = (url: string): string | undefined =>
  /^https?:\/\/\S+$/.test(url) ? undefined : 'Enter a URL that begins with https:// or http://'
