import type { Cli } from './cli.ts'

/** A noun whose things have names that completion can list. */
export type ResourceNoun =
  | 'vm'
  | 'template'
  | 'group'
  | 'disk'
  | 'network'
  | 'subnet'
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

/** What completion offers for an argument or an option: the names of a noun's things, or fixed words. */
export type Completion = ResourceNoun | 'context' | 'file' | readonly string[]

export interface ArgumentSpec {
  /** `<vm>` is required, `[name]` is not, `<words...>` takes all that follow. */
  syntax: string
  /** This is what the command calls it, if not by the name in `syntax`. */
  key?: string
  description: string
  complete?: Completion
}

export interface OptionSpec {
  flags: string
  description: string
  complete?: Completion
  required?: boolean
  /** A closed set: any other word is refused before the command runs. */
  values?: readonly string[]
  /** What completion offers beside the names of things. */
  also?: readonly string[]
  /** What completion offers after a colon behind the value. */
  afterColon?: readonly string[]
  /** Several values may be given with commas; the command gets an array. */
  isList?: boolean
  /** The option may be given several times; the command gets an array. */
  repeats?: boolean
  default?: string
  /** It turns the text into what the command wants, or throws a UsageError. */
  parse?: (text: string) => unknown
}

interface CommandSpec<Input extends object = never> {
  name: string
  summary: string
  details?: string
  arguments?: ArgumentSpec[]
  options?: OptionSpec[]
  /** The columns of its table, for the help. */
  columns?: readonly { name: string; isExtra?: boolean }[]
  /** These are whole command lines, without the prompt. */
  examples: string[]
  isHidden?: boolean
  /** The input has arguments and options by their names in camel case. */
  run(cli: Cli, input: Input): Promise<void>
}

export interface GroupSpec {
  name: string
  summary: string
  commands: CommandNode[]
}

export type AnyCommand = CommandSpec<never>

/** Checks a command against the type of its input, and then forgets that type. */
export const command = <Input extends object>(spec: CommandSpec<Input>): AnyCommand => spec

export type CommandNode = AnyCommand | GroupSpec

/** The first word of each command line; what belongs to a word is loaded when it is typed. */
export type CommandTree = Record<string, () => Promise<CommandNode>>

export const isGroup = (node: CommandNode): node is GroupSpec => 'commands' in node

/** Verbs that people know from other command lines. */
export const aliases: Record<string, string> = { list: 'ls', show: 'get', delete: 'rm', log: 'logs' }

/** Describes and closes the set of a value that must be one of a few words. */
export const oneOf = (words: readonly string[]): { description: string; values: readonly string[] } => ({
  description: words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`,
  values: words,
})
