import type { Cli } from './cli.ts'

/** A kind of resource with names that completion can list. */
export type ResourceNoun =
  | 'vm'
  | 'template'
  | 'group'
  | 'disk'
  | 'snapshot'
  | 'custom-image'
  | 'network'
  | 'subnet'
  | 'address'
  | 'firewall'
  | 'key'
  | 'ssh-key'
  | 'member'
  | 'project'
  | 'org'
  | 'webhook'
  | 'image'
  | 'location'
  | 'operation'
  | 'queue'
  | 'reservation'
  | 'host'
  | 'user'

/** What completion offers for an argument or an option: names of resources, or fixed words. */
export type Completion = ResourceNoun | 'context' | 'file' | readonly string[]

export interface ArgumentSpec {
  /** `<vm>` is required, `[name]` is optional, and `<words...>` takes all remaining words. */
  syntax: string
  /** The name in the command's input, if it differs from the name in `syntax`. */
  key?: string
  description: string
  complete?: Completion
}

export interface OptionSpec {
  flags: string
  description: string
  complete?: Completion
  required?: boolean
  /** The supported values. Any other word is rejected before the command runs. */
  values?: readonly string[]
  /** Words that are accepted instead of supported values, such as those of the API. */
  synonyms?: Readonly<Record<string, string>>
  /** Words that completion offers in addition to the names of resources. */
  also?: readonly string[]
  /** Words that completion offers after a value and a colon. */
  afterColon?: readonly string[]
  /** The value may be a list separated by commas; the command gets an array. */
  isList?: boolean
  /** The option may be given several times; the command gets an array. */
  repeats?: boolean
  default?: string
  /** Converts the text to the value that the command needs, or throws a UsageError. */
  parse?: (text: string) => unknown
}

interface CommandSpec<Input extends object = never> {
  name: string
  summary: string
  details?: string
  arguments?: ArgumentSpec[]
  options?: OptionSpec[]
  /** The columns of the command's table, for the help text. */
  columns?: readonly { name: string; isExtra?: boolean }[]
  /** Whole command lines, without the prompt. */
  examples: string[]
  isHidden?: boolean
  /** `input` contains the arguments and options by name, in camel case. */
  run(cli: Cli, input: Input): Promise<void>
}

export interface GroupSpec {
  name: string
  summary: string
  commands: CommandNode[]
}

export type AnyCommand = CommandSpec<never>

/** Checks a command against the type of its input, and returns it without that type. */
export const command = <Input extends object>(spec: CommandSpec<Input>): AnyCommand => spec

export type CommandNode = AnyCommand | GroupSpec

/** Maps the first word of a command line to its command. The code is loaded when the word is typed. */
export type CommandTree = Record<string, () => Promise<CommandNode>>

export const isGroup = (node: CommandNode): node is GroupSpec => 'commands' in node

/** Verbs that users know from other tools. */
export const aliases: Record<string, string> = { list: 'ls', show: 'get', delete: 'rm', log: 'logs' }

/** Returns the description and the supported values of an option that accepts only these words. */
export const oneOf = (words: readonly string[]): { description: string; values: readonly string[] } => ({
  description: words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`,
  values: words,
})
