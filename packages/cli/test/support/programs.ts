import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Returns whether a system program is missing, and prints which package to install. With CI=true, a missing program
 * fails the test.
 */
export function isMissing(program: string): boolean {
  if (spawnSync('sh', ['-c', `command -v ${program}`]).status === 0) return false
  if (process.env.CI === 'true') throw new Error(`install ${program}`)
  console.error(`skipped: install ${program} to run these tests`)
  return true
}

/** Writes a shell script that replaces a system program if PATH begins with this folder. */
export function placeProgram(folder: string, name: string, lines: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), `#!/bin/sh\n${lines}\n`)
  chmodSync(join(folder, name), 0o755)
}
