import { commands } from './commands/index.ts'
import {
  type AnyCommand,
  type ArgumentSpec,
  type CommandNode,
  isGroup,
  type OptionSpec,
} from './core/command.ts'
import { globalOptions } from './core/global-options.ts'

interface ReferencePage {
  /** The name of the file in docs/cli. */
  file: string
  text: string
}

interface Leaf {
  words: string
  spec: AnyCommand
}

/** Returns the reference: a page for each command, and an index page. */
export async function referencePages(): Promise<ReferencePage[]> {
  const specs = await Promise.all(Object.values(commands).map((load) => load()))
  const leaves = specs.flatMap((spec) => leavesOf('slipway', spec)).filter(({ spec }) => !spec.isHidden)
  return [indexPage(specs, leaves), ...leaves.map(commandPage)]
}

function leavesOf(before: string, spec: CommandNode): Leaf[] {
  const words = `${before} ${spec.name}`
  return isGroup(spec) ? spec.commands.flatMap((inner) => leavesOf(words, inner)) : [{ words, spec }]
}

const fileOf = (words: string) => `${words.replace(/^slipway /, '').replaceAll(' ', '-')}.md`

function indexPage(specs: CommandNode[], leaves: Leaf[]): ReferencePage {
  const sections = specs
    .filter((spec) => isGroup(spec) || !spec.isHidden)
    .map((spec) => {
      const own = leaves.filter(({ words }) => words.split(' ')[1] === spec.name)
      const rows = own.map(
        ({ words, spec: leaf }) => `| [\`${words}\`](${fileOf(words)}) | ${cell(leaf.summary)} |`,
      )
      const title = isGroup(spec) ? `## ${spec.name}: ${spec.summary}` : `## ${spec.name}`
      return [title, '', '| command | description |', '|---|---|', ...rows].join('\n')
    })
  const text = [
    '# Command line',
    'Every command accepts `--help`; `slipway help vm create` shows the same text as `slipway vm create --help`. Options take precedence over environment variables, and environment variables over the current context. `ls`, `get`, `rm` and `logs` are aliases of `list`, `show`, `delete` and `log`.',
    '## Global options',
    optionTable(globalOptions),
    '## Exit codes',
    [
      '| code | meaning |',
      '|---|---|',
      '| 0 | success |',
      '| 1 | other error |',
      '| 2 | invalid command line: unknown word, value or column name |',
      '| 3 | not found |',
      '| 4 | conflict, or out of stock |',
      '| 5 | denied: not logged in, no permission, no payment method, or quota exceeded |',
      '| 124 | timed out while waiting; the operation continues |',
      '| 130 | interrupted by Ctrl-C; operations in progress continue |',
    ].join('\n'),
    ...sections,
  ]
  return { file: 'README.md', text: `${text.join('\n\n')}\n` }
}

function commandPage({ words, spec }: Leaf): ReferencePage {
  const usage = [
    words,
    ...((spec.options ?? []).length > 0 ? ['[options]'] : []),
    ...(spec.arguments ?? []).map(({ syntax }) => syntax),
  ]
  const parts = [
    `# ${words}`,
    `${spec.summary.charAt(0).toUpperCase()}${spec.summary.slice(1)}.`,
    ...(spec.details ? [spec.details] : []),
    `\`\`\`\n${usage.join(' ')}\n\`\`\``,
    ...(spec.arguments?.length ? ['## Arguments', argumentTable(spec.arguments)] : []),
    ...(spec.options?.length ? ['## Options', optionTable(spec.options)] : []),
    ...(spec.columns
      ? [
          '## Columns',
          spec.columns
            .map(({ name, isExtra }) => `\`${name}\`${isExtra ? ' (only with -o columns=…)' : ''}`)
            .join(', '),
        ]
      : []),
    '## Examples',
    `\`\`\`sh no-run: each line is a separate example\n${spec.examples.join('\n')}\n\`\`\``,
    '[All commands and global options](README.md)',
  ]
  return { file: fileOf(words), text: `${parts.join('\n\n')}\n` }
}

function argumentTable(specs: ArgumentSpec[]): string {
  return [
    '| argument | meaning |',
    '|---|---|',
    ...specs.map(({ syntax, description }) => `| \`${syntax}\` | ${cell(description)} |`),
  ].join('\n')
}

function optionTable(specs: OptionSpec[]): string {
  const rows = specs.map((option) => {
    const notes = [
      option.description,
      option.required && 'required',
      option.default && `default: ${option.default}`,
    ]
    return `| \`${option.flags}\` | ${cell(notes.filter(Boolean).join('; '))} |`
  })
  return ['| option | meaning |', '|---|---|', ...rows].join('\n')
}

const cell = (text: string) => text.replaceAll('|', '\\|')
