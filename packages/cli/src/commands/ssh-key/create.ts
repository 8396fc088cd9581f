import { command } from '../../core/command.ts'
import { printOne } from '../../output/print.ts'
import { findPublicKey, readPublicKey } from '../vm/public-key.ts'

export const sshKeyCreate = command<{ name: string; file?: string }>({
  name: 'create',
  summary: 'add an SSH public key',
  details:
    'If the file is a private key, the public key next to it is used. The private key never leaves this computer.',
  arguments: [{ syntax: '<name>', description: 'name of the key' }],
  options: [
    {
      flags: '--file <file>',
      description:
        'public key file, or - for standard input (default: ~/.ssh/id_ed25519.pub, or another public key in ~/.ssh)',
      complete: 'file',
    },
  ],
  examples: ['slipway ssh-key create laptop', 'slipway ssh-key create ci --file ci.pub'],
  async run(cli, { name, file }) {
    const public_key = file ? await readPublicKey(cli, file) : await findPublicKey(cli)
    const target = { project_id: await cli.project() }
    await printOne(cli, await cli.client.sshKeyCreate(target, { name, public_key }))
  },
})
