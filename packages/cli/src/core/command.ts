import type { Cli } from './cli.ts'

/** What a name stands for; completion offers the live names of it. */
export type Completion =
  | 'vm'
  | 'disk'
  | 'network'
  | 'subnet'
  | 'firewall'
  | 'key'
  | 'member'
  | 'project'
  | 'org'
  | 'webhook'
  | 'image'
  | 'location'
  | 'type'
  | 'operation'
  | 'context'
  | 'host'
  | 'user'
  | 'file'

export interface ArgumentSpec {
  /** `<vm>` is required, `[name]` is not, `<words...>` takes all that follow. */
  syntax: string
  /** What the command calls it, if not by the name in `syntax`. */
  key?: string
  description: string
  complete?: Completion | string[]
}

export interface OptionSpec {
  flags: string
  description: string
  complete?: Completion | string[]
  required?: boolean
  /** May be given several times; the command gets an array. */
  repeats?: boolean
  default?: string
  /** Turns the text into what the command wants; throws a UsageError otherwise. */
  parse?: (text: string) => unknown
}

export interface CommandSpec<Input extends object = never> {
  name: string
  summary: string
  details?: string
  arguments?: ArgumentSpec[]
  options?: OptionSpec[]
  /** Whole command lines, without the prompt. */
  examples: string[]
  isHidden?: boolean
  /** Gets arguments and options by their names in camel case. */
  run(cli: Cli, input: Input): Promise<void>
}

export interface GroupSpec {
  name: string
  summary: string
  commands: (AnyCommand | GroupSpec)[]
}

export type AnyCommand = CommandSpec<never>

/** Keeps the type of the input between a command's options and its `run`. */
export const command = <Input extends object>(spec: CommandSpec<Input>): AnyCommand => spec

export const isGroup = (spec: AnyCommand | GroupSpec): spec is GroupSpec => 'commands' in spec
