import { type AnyCommand, type CommandTree, command } from '../../core/command.ts'
import { UsageError } from '../../errors/cli-error.ts'
import { print } from '../../output/print.ts'
import { candidatesFor } from './candidates.ts'
import { completionScripts, type Shell } from './scripts.ts'

const shells = Object.keys(completionScripts) as Shell[]

export const completion = command<{ shell: string }>({
  name: 'completion',
  summary: 'print a completion script for bash, zsh or fish',
  details: 'Completes commands, options, and the current names of VMs, disks and other resources.',
  arguments: [{ syntax: '<shell>', description: shells.join(', '), complete: shells }],
  examples: [
    'source <(slipway completion bash)',
    'slipway completion zsh > ~/.zsh/completions/_slipway',
    'slipway completion fish > ~/.config/fish/completions/slipway.fish',
  ],
  async run(cli, { shell }) {
    if (!Object.hasOwn(completionScripts, shell))
      throw new UsageError(`No completion script for ${shell}.`, [`Supported: ${shells.join(', ')}`])
    cli.io.stdout.write(completionScripts[shell as Shell])
  },
})

/** The completion scripts pass the words typed so far after `--`; the last word is incomplete. */
export const completeCommand = (tree: CommandTree): AnyCommand =>
  command<{ words: string[] }>({
    name: '__complete',
    summary: 'list completions of the current word',
    isHidden: true,
    arguments: [{ syntax: '[words...]', description: 'the words of the command line so far' }],
    examples: [],
    async run(cli, { words }) {
      // A shell cannot show an error message in the middle of a line.
      const candidates = await candidatesFor(cli, tree, words).catch(() => [])
      for (const { word, meaning } of candidates) print(cli, meaning ? `${word}\t${meaning}` : word)
    },
  })
