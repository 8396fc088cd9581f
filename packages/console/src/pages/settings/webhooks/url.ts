/** Says what is wrong with the URL of a webhook; undefined if nothing is. */
export const urlProblem = (url: string): string | undefined =>
  /^https?:\/\/\S+$/.test(url) ? undefined : 'Enter a URL that begins with https:// or http://'
