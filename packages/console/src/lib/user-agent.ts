/** The first that fits counts: most browsers also claim to be the ones below them. */
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

/** Returns "Chrome on Linux"; a program that is no browser by its own words. */
export function agentWords(agent: string): string {
  const named = (choices: [RegExp, string][]) => choices.find(([pattern]) => pattern.test(agent))?.[1]
  const program = named(programs)
  const system = named(systems)
  if (!program) return agent || 'unknown'
  return system ? `${program} on ${system}` : program
}
