import { Command, CommanderError, Option } from 'commander'
import { commands } from './commands/index.ts'
import { Cli } from './core/cli.ts'
import { type AnyCommand, aliases, type CommandNode, isGroup, type OptionSpec } from './core/command.ts'
import { globalOptions } from './core/global-options.ts'
import { valueParser } from './core/parse.ts'
import type { GlobalFlags } from './core/settings.ts'
import { exitCodes, UsageError } from './errors/cli-error.ts'
import { type Io, widthOf } from './io.ts'
import { reportFailure } from './output/report.ts'
import { version } from './version.ts'

/** Width of the help text if the output is not a terminal. */
const plainWidth = 80

/** Runs the command that was typed. */
type Run = (spec: AnyCommand, flags: GlobalFlags, input: object) => Promise<void>

const headings: [heading: string, nouns: string[]][] = [
  ['Login and setup:', ['login', 'logout', 'context', 'whoami', 'completion']],
  [
    'Machines:',
    [
      'offers',
      'vm',
      'queue',
      'reservation',
      'template',
      'group',
      'disk',
      'snapshot',
      'custom-image',
      'network',
      'subnet',
      'address',
      'firewall',
      'ssh-key',
      'image',
      'location',
    ],
  ],
  [
    'Operations and billing:',
    ['operation', 'events', 'usage', 'cost', 'suggestions', 'billing', 'price', 'quota'],
  ],
  ['People and projects:', ['project', 'org', 'member', 'key', 'webhook']],
  ['Other:', ['export', 'mcp', 'admin', 'dev']],
]

/** Builds the command tree. Loads only the commands of the typed noun, or all commands if none was typed. */
async function buildProgram(words: string[], run: Run): Promise<Command> {
  const program = new Command('slipway')
    .description('GPU virtual machines from the command line')
    .version(version, '-V, --version', 'print the version')
    .helpCommand(false)
    .showSuggestionAfterError()
    .exitOverride()
  for (const option of globalOptions) program.addOption(toOption(option))
  configureHelp(program)
  const typed = firstNoun(words)
  const names = typed ? [typed] : Object.keys(commands)
  const specs = await Promise.all(names.map((name) => commands[name]!()))
  for (const spec of specs) {
    const heading = headings.find(([, nouns]) => nouns.includes(spec.name))?.[0]
    if (heading) program.commandsGroup(heading)
    addSpec(program, spec, run)
  }
  program.addHelpText('after', `\nStart with:\n  slipway login\n  slipway offers\n  slipway vm create\n`)
  return program
}

function addSpec(parent: Command, spec: CommandNode, run: Run): void {
  if (isGroup(spec)) {
    const group = parent.command(spec.name).description(sentence(spec.summary)).summary(spec.summary)
    group.helpCommand(false).configureHelp({ showGlobalOptions: false }).exitOverride()
    group.addHelpText('after', '\n`slipway --help` shows the global options.\n')
    for (const inner of spec.commands) addSpec(group, inner, run)
    return
  }
  const node = parent.command(spec.name, { hidden: spec.isHidden ?? false })
  const alias = aliases[spec.name]
  if (alias) node.alias(alias)
  node
    .summary(spec.summary)
    .description(spec.details ? `${sentence(spec.summary)}\n\n${spec.details}` : sentence(spec.summary))
  for (const argument of spec.arguments ?? []) node.argument(argument.syntax, argument.description)
  for (const option of spec.options ?? []) node.addOption(toOption(option))
  configureHelp(node)
  if (spec.columns) node.addHelpText('after', `\n${columnsHelp(spec.columns)}`)
  if (spec.examples.length > 0) {
    node.addHelpText('after', `\nExamples:\n${spec.examples.map((example) => `  ${example}`).join('\n')}\n`)
  }
  node.action(async () => {
    const input: Record<string, unknown> = { ...node.opts() }
    for (const [index, argument] of node.registeredArguments.entries()) {
      input[spec.arguments?.[index]?.key ?? camelCase(argument.name())] = node.processedArgs[index]
    }
    await run(spec, node.optsWithGlobals<GlobalFlags>(), input)
  })
}

function toOption(spec: OptionSpec): Option {
  const option = new Option(spec.flags, spec.description)
  if (spec.required) option.makeOptionMandatory()
  if (spec.default !== undefined) option.default(spec.default)
  const parse = valueParser(spec)
  if (spec.repeats) {
    option.argParser((text: string, before: unknown[] | undefined) => [...(before ?? []), parse(text)])
  } else if (spec.flags.includes('<') || spec.flags.includes('[')) option.argParser(parse)
  return option
}

/** Returns the noun that was typed: the first known word that is not the value of a global option. */
function firstNoun(words: string[]): string | undefined {
  const takesValue = (word: string | undefined) =>
    globalOptions.some(({ flags }) => flags.includes('<') && flags.split(/[ ,]+/).includes(word ?? ''))
  return words.find((word, index) => Object.hasOwn(commands, word) && !takesValue(words[index - 1]))
}

function columnsHelp(columns: NonNullable<AnyCommand['columns']>): string {
  const names = (isExtra: boolean) =>
    columns.filter((column) => (column.isExtra ?? false) === isExtra).map(({ name }) => name)
  const extra = names(true)
  return `Columns:\n  ${names(false).join(', ')}${extra.length > 0 ? `; only with -o columns=…: ${extra.join(', ')}` : ''}\n`
}

function configureHelp(node: Command): void {
  node.configureHelp({ showGlobalOptions: true, sortSubcommands: false, sortOptions: false })
  node.exitOverride()
}

/** Runs a command line and returns its exit code. */
export async function runProgram(words: string[], io: Io): Promise<number> {
  try {
    return await parseAndRun(words[0] === 'help' ? [...words.slice(1), '--help'] : words, io)
  } catch (error) {
    return reportFailure(io, error, words)
  }
}

async function parseAndRun(words: string[], io: Io): Promise<number> {
  let exitCode: number = exitCodes.done
  const program = await buildProgram(words, async (spec, flags, input) => {
    exitCode = await runCommand(new Cli(flags, io), spec, input)
  })
  // Collects what commander prints to standard error. It is printed only if a command group was called
  // without a subcommand; `usageErrorOf` rewrites other errors.
  let help = ''
  forEachCommand(program, (node) => {
    node.configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => {
        help += text
      },
      getOutHelpWidth: () => widthOf(io.stdout) ?? plainWidth,
      getErrHelpWidth: () => widthOf(io.stderr) ?? plainWidth,
    })
  })
  try {
    await program.parseAsync(words, { from: 'user' })
    return exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return exitCodes.done
    if (error.code === 'commander.help') {
      io.stderr.write(help)
      return exitCodes.usage
    }
    throw usageErrorOf(error)
  }
}

/** Runs a command and returns its exit code. In an error, replaces names of request fields with options. */
async function runCommand(cli: Cli, spec: AnyCommand, input: object): Promise<number> {
  try {
    await spec.run(cli, input as never)
    return cli.exitCode
  } catch (error) {
    const [{ explainIfOld }, { withOptionNames }] = await Promise.all([
      import('./core/old-server.ts'),
      import('./core/option-names.ts'),
    ])
    throw withOptionNames(spec, await explainIfOld(cli, error))
  }
}

/** Converts a commander error to a full sentence, with its suggestion as a hint. */
function usageErrorOf(error: CommanderError): UsageError {
  const [first = '', ...rest] = error.message.replace(/^error: /, '').split('\n')
  const suggestion = rest
    .map((line) =>
      line
        .replace(/^\((.+)\)$/, '$1')
        .replace('one of ', '')
        .replaceAll(', ', ' or '),
    )
    .filter(Boolean)
  return new UsageError(sentence(first.replace(/\.$/, '')), [
    ...suggestion,
    'Add `--help` to any command to see its usage.',
  ])
}

function forEachCommand(node: Command, visit: (node: Command) => void): void {
  visit(node)
  for (const child of node.commands) forEachCommand(child, visit)
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
const camelCase = (text: string) => text.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
