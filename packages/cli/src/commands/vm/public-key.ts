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
 * Reads a public key from a file. If the file is a private key, reads the public key next to it.
 */
export async function readPublicKey(cli: Cli, path: string): Promise<string> {
  const text = (await readTextFile(cli.io, path)).trim()
  if (!isPrivateKey(text)) {
    if (path.endsWith('.pub')) rememberKey(cli.env, text, resolve(cli.io.cwd, path.slice(0, -'.pub'.length)))
    return text
  }
  const publicPath = `${path}.pub`
  if (path === '-' || !isFile(cli, publicPath)) {
    throw new UsageError(
      `${path} is a private key. Use the public key; the private key must not leave this computer.`,
      ['Use the file that ends in .pub. `ssh-keygen -y -f FILE` prints the public key.'],
    )
  }
  cli.say(`${path} is a private key and stays on this computer; using ${publicPath}.`)
  return readPublicKey(cli, publicPath)
}

const isFile = ({ io }: Cli, path: string) => existsSync(resolve(io.cwd, path))

/** Reads each value that is a file or looks like one. Any other value is the name of a registered key. */
export async function keysOf(
  cli: Cli,
  wanted: string[],
): Promise<{ ssh_public_key: string | undefined; ssh_key_ids?: string[] }> {
  const namesFile = (text: string) => text === '-' || /[/\\]|\.pub$/.test(text) || isFile(cli, text)
  const [file, ...more] = wanted.filter(namesFile)
  if (more.length > 0)
    throw new UsageError('Only one --ssh-key can be a file.', [
      'Register more keys with `slipway ssh-key create`, and use their names with --ssh-key.',
    ])
  const names = wanted.filter((text) => !namesFile(text))
  return {
    ssh_public_key: file === undefined ? undefined : await readPublicKey(cli, file),
    ...(names.length > 0 && {
      ssh_key_ids: await Promise.all(names.map((name) => idOf(cli, sshKeys, name))),
    }),
  }
}

/** Recognizes OpenSSH, PEM and PuTTY private keys. The service rejects everything else except public keys. */
const isPrivateKey = (text: string) => /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----|^PuTTY-User-Key-File/.test(text)

/**
 * Returns the public key in ~/.ssh. If there are several and id_ed25519.pub is not among them, asks the user
 * to choose one.
 */
export async function findPublicKey(cli: Cli): Promise<string> {
  const folder = join(homeOf(cli.env), '.ssh')
  const found = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.pub')) : []
  const sorted = [
    ...preferredKeys.filter((name) => found.includes(name)),
    ...found.filter((name) => !preferredKeys.includes(name)),
  ]
  const [first] = sorted
  if (first === undefined) return createOrAskForKey(cli, folder)
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

async function createOrAskForKey(cli: Cli, folder: string): Promise<string> {
  if (!cli.isInteractive)
    throw new UsageError('There is no SSH key in ~/.ssh.', [
      'Create one with `ssh-keygen -t ed25519`, or choose a public key with --ssh-key.',
    ])
  const file = join(folder, 'id_ed25519')
  // A private key without its public key must not be overwritten.
  if (
    !existsSync(file) &&
    (await askYes(cli, 'There is no SSH key in ~/.ssh. Create ~/.ssh/id_ed25519?', true))
  )
    return createKey(cli, folder, file)
  const path = await askText(cli, 'Public key file', {
    validate: (text) =>
      isFile(cli, text) ? undefined : 'There is no such file. Create a key with `ssh-keygen -t ed25519`.',
  })
  return readPublicKey(cli, path)
}

function createKey(cli: Cli, folder: string, file: string): Promise<string> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const words = ['-q', '-t', 'ed25519', '-N', '', '-f', file]
  const { status, error, stderr } = spawnSync('ssh-keygen', words, { encoding: 'utf8', env: cli.env })
  if (status !== 0) {
    const reason = error ? 'ssh-keygen is not installed' : stderr.trim()
    throw new CliError('no_ssh', `Cannot create an SSH key: ${reason}.`, exitCodes.error)
  }
  cli.say('Created the SSH key ~/.ssh/id_ed25519.')
  return readPublicKey(cli, `${file}.pub`)
}
