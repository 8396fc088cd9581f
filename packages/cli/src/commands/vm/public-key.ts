import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { askChoice, askText } from '../../core/ask.ts'
import type { Cli } from '../../core/cli.ts'
import { readTextFile } from '../../core/parse.ts'
import { UsageError } from '../../errors/cli-error.ts'

const preferredKeys = ['id_ed25519.pub', 'id_ecdsa.pub', 'id_rsa.pub']

/** Returns the public key in ~/.ssh. Of several, a person chooses unless the preferred one is there. */
export async function findPublicKey(cli: Cli): Promise<string> {
  const folder = join(homedir(), '.ssh')
  const found = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.pub')) : []
  const sorted = [
    ...preferredKeys.filter((name) => found.includes(name)),
    ...found.filter((name) => !preferredKeys.includes(name)),
  ]
  const [first] = sorted
  if (first === undefined) return askForKeyFile(cli)
  const isClear = sorted.length === 1 || first === preferredKeys[0] || !cli.isInteractive
  const chosen = isClear
    ? first
    : await askChoice(
        'Which public key?',
        sorted.map((name) => ({ value: name })),
        first,
      )
  cli.note(cli.noteColors.dim(`Using the key ~/.ssh/${chosen}`))
  return readFileSync(join(folder, chosen), 'utf8').trim()
}

async function askForKeyFile(cli: Cli): Promise<string> {
  if (!cli.isInteractive) throw new UsageError('No public key was found in ~/.ssh: name one with --ssh-key.')
  const path = await askText('Public key file', {
    validate: (text) =>
      existsSync(text) ? undefined : 'There is no such file. `ssh-keygen -t ed25519` makes a key.',
  })
  return readTextFile(path).trim()
}
