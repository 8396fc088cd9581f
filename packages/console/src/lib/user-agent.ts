/** The first match counts, because most user agents also contain names from further down the list. */
const programs: [RegExp, string][] = [
  [/\bEdg\//, 'Edge'],
  [/\bFirefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]
const systems: [RegExp, string][] = [
  [/iPhone|iPad/, 'iOS'],
  [/Android/, 'Android'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux'],
]

/** Returns "Chrome on Linux", or the user agent itself if it is not a browser. */
export function agentText(agent: string): string {
  const named = (choices: [RegExp, string][]) => choices.find(([pattern]) => pattern.test(agent))?.[1]
  const program = named(programs)
  const system = named(systems)
  if (!program) return agent || 'unknown'
  return system ? `${program} on ${system}` : program
}
