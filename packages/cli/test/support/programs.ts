import { spawnSync } from 'node:child_process'

/** Whether a program of the system is not there; says which package to install, and with CI=true does not let it pass. */
export function isMissing(program: string): boolean {
  if (spawnSync('sh', ['-c', `command -v ${program}`]).status === 0) return false
  if (process.env.CI === 'true') throw new Error(`install ${program}`)
  console.error(`skipped: install ${program} to run these tests`)
  return true
}
