import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { askChoice, askText, askYes } from '../../core/ask.ts'
import type { Cli } from '../../core/cli.ts'
import { idOf } from '../../core/resource.ts'
import { CliError, exitCodes, UsageError } from '../../errors/cli-error.ts'
import { homeOf, readTextFile } from '../../io.ts'
import { sshKeys } from '../ssh-key/resource.ts'
import { rememberKey } from './remembered-keys.ts'

const preferredKeys = ['id_ed25519.pub', 'id_ecdsa.pub', 'id_rsa.pub']

/**
 * Reads a public key from a file. If the path is that of a private key, reads the public key next to it.
 */
export async function readPublicKey(cli: Cli, path: string): Promise<string> {
  const text = (await readTextFile(cli.io, path)).trim()
  if (!isPrivateKey(text)) {
    if (path.endsWith('.pub')) rememberKey(cli.env, text, resolve(cli.io.cwd, path.slice(0, -'.pub'.length)))
    return text
  }
  const beside = `${path}.pub`
  if (path === '-' || !isFile(cli, beside)) {
    throw new UsageError(
      `${path} is a private key. Use the public key; the private key must not leave this computer.`,
      ['Name the public one, which ends in .pub; `ssh-keygen -y -f FILE` prints it.'],
    )
  }
  cli.say(`${path} is a private key and stays on this computer; using ${beside}.`)
  return readPublicKey(cli, beside)
}

const isFile = ({ io }: Cli, path: string) => existsSync(resolve(io.cwd, path))

/** Returns the named keys. A word that is a file, or looks like one, is read; any other word names a registered key. */
export async function keysOf(
  cli: Cli,
  wanted: string[],
): Promise<{ ssh_public_key: string | undefined; ssh_key_ids?: string[] }> {
  const namesFile = (text: string) => text === '-' || /[/\\]|\.pub$/.test(text) || isFile(cli, text)
  const [file, ...more] = wanted.filter(namesFile)
  if (more.length > 0)
    throw new UsageError('Only one key can be read from a file.', [
      '`slipway ssh-key create` registers more, which --ssh-key then takes by name.',
    ])
  const names = wanted.filter((text) => !namesFile(text))
  return {
    ssh_public_key: file === undefined ? undefined : await readPublicKey(cli, file),
    ...(names.length > 0 && {
      ssh_key_ids: await Promise.all(names.map((name) => idOf(cli, sshKeys, name))),
    }),
  }
}

/** Recognizes private keys of OpenSSH, PEM and PuTTY. The service rejects any other text that is not a public key. */
const isPrivateKey = (text: string) => /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----|^PuTTY-User-Key-File/.test(text)

/** Returns the public key in ~/.ssh. If there are several and none is the preferred one, the user chooses. */
export async function findPublicKey(cli: Cli): Promise<string> {
  const folder = join(homeOf(cli.env), '.ssh')
  const found = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.pub')) : []
  const sorted = [
    ...preferredKeys.filter((name) => found.includes(name)),
    ...found.filter((name) => !preferredKeys.includes(name)),
  ]
  const [first] = sorted
  if (first === undefined) return makeOrAskForKey(cli, folder)
  const isClear = sorted.length === 1 || first === preferredKeys[0] || !cli.isInteractive
  const chosen = isClear
    ? first
    : await askChoice(
        cli,
        'Which public key?',
        sorted.map((name) => ({ value: name })),
        first,
      )
  cli.note(cli.noteColors.dim(`Using the key ~/.ssh/${chosen}`))
  return readPublicKey(cli, join(folder, chosen))
}

async function makeOrAskForKey(cli: Cli, folder: string): Promise<string> {
  if (!cli.isInteractive)
    throw new UsageError('There is no SSH key in ~/.ssh.', [
      'Make one with `ssh-keygen -t ed25519`, or name a public key with --ssh-key.',
    ])
  const file = join(folder, 'id_ed25519')
  // A private key without its public one is never overwritten.
  if (
    !existsSync(file) &&
    (await askYes(cli, 'There is no SSH key in ~/.ssh. Create ~/.ssh/id_ed25519?', true))
  )
    return makeKey(cli, folder, file)
  const path = await askText(cli, 'Public key file', {
    validate: (text) =>
      isFile(cli, text) ? undefined : 'There is no such file. `ssh-keygen -t ed25519` makes a key.',
  })
  return readPublicKey(cli, path)
}

function makeKey(cli: Cli, folder: string, file: string): Promise<string> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const words = ['-q', '-t', 'ed25519', '-N', '', '-f', file]
  const { status, error, stderr } = spawnSync('ssh-keygen', words, { encoding: 'utf8', env: cli.env })
  if (status !== 0) {
    const reason = error ? 'ssh-keygen is not installed' : stderr.trim()
    throw new CliError('no_ssh', `No SSH key was created: ${reason}.`, exitCodes.error)
  }
  cli.say('Created the SSH key ~/.ssh/id_ed25519.')
  return readPublicKey(cli, `${file}.pub`)
}
