import { Command, CommanderError, Option } from 'commander'
import { commands } from './commands/index.ts'
import { Cli } from './core/cli.ts'
import { type CommandNode, isGroup, type OptionSpec } from './core/command.ts'
import { globalOptions } from './core/global-options.ts'
import type { GlobalFlags } from './core/settings.ts'
import { exitCodes, UsageError } from './errors/cli-error.ts'
import { version } from './version.ts'

const headings: [heading: string, nouns: string[]][] = [
  ['Login and setup:', ['login', 'logout', 'context', 'whoami', 'completion']],
  ['Machines:', ['offers', 'vm', 'disk', 'network', 'subnet', 'firewall', 'image', 'location']],
  ['Work and money:', ['operation', 'events', 'usage', 'cost', 'billing', 'price', 'quota']],
  ['People and projects:', ['project', 'org', 'member', 'key', 'webhook']],
  ['Other:', ['export', 'mcp', 'admin']],
]

/** Builds the command tree. Only the noun that was typed is loaded, unless help needs them all. */
async function buildProgram(words: string[]): Promise<Command> {
  const program = new Command('slipway')
    .description('GPU virtual machines from the command line')
    .version(version, '-V, --version', 'print the version')
    .helpCommand(false)
    .showSuggestionAfterError()
    .exitOverride()
  for (const option of globalOptions) program.addOption(toOption(option))
  configureHelp(program)
  const typed = words.find((word) => Object.hasOwn(commands, word))
  const names = typed ? [typed] : Object.keys(commands)
  const specs = await Promise.all(names.map((name) => commands[name]!()))
  for (const spec of specs) {
    const heading = headings.find(([, nouns]) => nouns.includes(spec.name))?.[0]
    if (heading) program.commandsGroup(heading)
    addSpec(program, spec)
  }
  program.addHelpText('after', `\nStart with:\n  slipway login\n  slipway offers\n  slipway vm create\n`)
  return program
}

function addSpec(parent: Command, spec: CommandNode): void {
  if (isGroup(spec)) {
    const group = parent.command(spec.name).description(sentence(spec.summary)).summary(spec.summary)
    group.helpCommand(false).configureHelp({ showGlobalOptions: false }).exitOverride()
    group.addHelpText('after', '\n`slipway --help` shows the options that work everywhere.\n')
    for (const inner of spec.commands) addSpec(group, inner)
    return
  }
  const node = parent.command(spec.name, { hidden: spec.isHidden ?? false })
  node
    .summary(spec.summary)
    .description(spec.details ? `${sentence(spec.summary)}\n\n${spec.details}` : sentence(spec.summary))
  for (const argument of spec.arguments ?? []) node.argument(argument.syntax, argument.description)
  for (const option of spec.options ?? []) node.addOption(toOption(option))
  configureHelp(node)
  if (spec.examples.length > 0) {
    node.addHelpText('after', `\nExamples:\n${spec.examples.map((example) => `  ${example}`).join('\n')}\n`)
  }
  node.action(async () => {
    const input: Record<string, unknown> = { ...node.opts() }
    for (const [index, argument] of node.registeredArguments.entries()) {
      input[spec.arguments?.[index]?.key ?? camelCase(argument.name())] = node.processedArgs[index]
    }
    const cli = new Cli(node.optsWithGlobals<GlobalFlags>())
    try {
      await spec.run(cli, input as never)
    } catch (error) {
      const { explainIfOld } = await import('./core/old-server.ts')
      throw await explainIfOld(cli, error)
    }
  })
}

function toOption(spec: OptionSpec): Option {
  const option = new Option(spec.flags, spec.description)
  if (spec.required) option.makeOptionMandatory()
  if (spec.default !== undefined) option.default(spec.default)
  const parse = spec.parse ?? ((text: string) => text)
  if (spec.repeats) {
    option.argParser((text: string, before: unknown[] | undefined) => [...(before ?? []), parse(text)])
  } else if (spec.parse) option.argParser(parse)
  return option
}

function configureHelp(node: Command): void {
  node.configureHelp({ showGlobalOptions: true, sortSubcommands: false, sortOptions: false })
  node.exitOverride()
}

/** Runs a command line and returns its exit code. */
export async function runProgram(words: string[]): Promise<number> {
  const program = await buildProgram(words)
  // We print commander's errors in our own form, except the help of a noun that lacks its verb.
  let help = ''
  forEachCommand(program, (node) => {
    node.configureOutput({
      writeErr: (text) => {
        help += text
      },
    })
  })
  try {
    await program.parseAsync(words, { from: 'user' })
    return Number(process.exitCode ?? exitCodes.done)
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return exitCodes.done
    if (error.code === 'commander.help') {
      process.stderr.write(help)
      return exitCodes.usage
    }
    throw new UsageError(error.message.replace(/^error: /, ''), [
      '`--help` after any command shows how it is used.',
    ])
  }
}

function forEachCommand(node: Command, visit: (node: Command) => void): void {
  visit(node)
  for (const child of node.commands) forEachCommand(child, visit)
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
const camelCase = (text: string) => text.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
