import { spawnSync } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { completionScripts, type Shell } from '../src/commands/completion/scripts.ts'
import { binary, freshHome } from './support/cli.ts'
import { isMissing } from './support/programs.ts'

const { home, base, remove } = freshHome()
afterAll(remove)
symlinkSync(binary, join(home, 'slipway'))
const verbs = ['show', 'start', 'stop', 'ssh']

/** Loads the script into the shell itself, then runs `code` there. */
function inShell(shell: Shell, code: string): string {
  const script = join(home, `completion.${shell}`)
  writeFileSync(script, completionScripts[shell])
  const flags = { bash: ['--norc'], zsh: ['-f'], fish: ['--no-config'] }[shell]
  const { stdout, stderr } = spawnSync(shell, [...flags, '-c', code.replaceAll('SCRIPT', script)], {
    env: { ...base, PATH: `${home}:${base.PATH}` },
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  return stdout
}

test('bash completes the words of a command', () => {
  const said = inShell(
    'bash',
    `source SCRIPT; COMP_WORDS=(slipway vm s); COMP_CWORD=2; _slipway; printf "%s\\n" "\${COMPREPLY[@]}"`,
  )
  expect(said.trim().split('\n')).toEqual(verbs)
})

test.skipIf(isMissing('zsh'))('zsh completes the words of a command, with what each word means', () => {
  // Outside the line editor there is nothing to describe to: the words themselves are printed.
  const stand = `compdef() { }; _describe() { print -l -- "\${(@P)2}" }; _files() { print files }`
  const said = inShell('zsh', `${stand}; source SCRIPT; words=(slipway vm s); CURRENT=3; _slipway`)
  expect(
    said
      .trim()
      .split('\n')
      .map((line) => line.split(':')[0]),
  ).toEqual(verbs)
  expect(said).toContain('show:show one VM')
  expect(
    inShell('zsh', `${stand}; source SCRIPT; words=(slipway vm create --ssh-key ""); CURRENT=5; _slipway`),
  ).toBe('files\n')
})

test.skipIf(isMissing('fish'))('fish completes the words of a command, with what each word means', () => {
  const said = inShell('fish', "source SCRIPT; complete -C 'slipway vm s'")
  const words = said
    .trim()
    .split('\n')
    .map((line) => line.split('\t')[0])
  expect(words.toSorted()).toEqual(verbs.toSorted())
  expect(said).toContain('show\tshow one VM')
})
