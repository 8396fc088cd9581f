import type { Cli } from '../../core/cli.ts'
import {
  aliases,
  type CommandNode,
  type CommandTree,
  type Completion,
  isGroup,
  type OptionSpec,
} from '../../core/command.ts'
import { readContexts } from '../../core/contexts.ts'
import { globalOptions } from '../../core/global-options.ts'
import { resources } from '../resources.ts'

/** A word that can be inserted at the cursor, and its description. */
interface Candidate {
  word: string
  meaning: string
}

/** How long the shell waits for lists from the service. */
const listTimeoutMs = 2000

/**
 * Returns the words that can replace the last word, which is being typed and may be empty. `words` are all
 * words after `slipway` on the command line.
 */
export async function candidatesFor(cli: Cli, tree: CommandTree, words: string[]): Promise<Candidate[]> {
  const typed = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const position = await findPosition(tree, before[0] === 'help' ? before.slice(1) : before)
  if (!position) return []
  const { node, argumentCount, openOption } = position
  const [, flag, value] = /^(--[\w-]+)=(.*)$/.exec(typed) ?? []
  const found = openOption
    ? await optionValues(cli, node, openOption, typed)
    : flag !== undefined
      ? withPrefix(`${flag}=`, await optionValues(cli, node, optionOf(node, flag), value ?? ''))
      : typed.startsWith('-')
        ? optionsOf(node)
        : node
          ? await wordsOf(cli, node, argumentCount)
          : await nounsOf(tree)
  return found.filter(({ word }) => word.startsWith(typed))
}

const withPrefix = (prefix: string, found: Candidate[]): Candidate[] =>
  found.map(({ word, meaning }) => ({ word: prefix + word, meaning }))

/** Returns the values of an option. If the option is a list, each value includes the items already typed. */
async function optionValues(
  cli: Cli,
  node: CommandNode | undefined,
  option: OptionSpec | undefined,
  typed: string,
): Promise<Candidate[]> {
  if (!option) return []
  const columns = node && !isGroup(node) ? (node.columns ?? []) : []
  if (option.flags.startsWith('-o,') && typed.startsWith('columns=')) {
    return listValues(typed, columns.map(({ name }) => name).map(plainWord), 'columns='.length)
  }
  const beforeColon = /^(.+):/.exec(typed)?.[1]
  if (option.afterColon && beforeColon !== undefined)
    return withPrefix(`${beforeColon}:`, option.afterColon.map(plainWord))
  const named = await valuesOf(cli, option.complete ?? option.values)
  const found = [...named, ...(option.also ?? []).map(plainWord)]
  return option.isList ? listValues(typed, found) : found
}

const plainWord = (word: string): Candidate => ({ word, meaning: '' })

function listValues(typed: string, found: Candidate[], from = 0): Candidate[] {
  return withPrefix(typed.slice(0, Math.max(from, typed.lastIndexOf(',') + 1)), found)
}

/** Where the cursor is in the command tree. */
interface Position {
  /** The command or group that was typed; undefined before the first word. */
  node: CommandNode | undefined
  argumentCount: number
  /** The option whose value is the next word. */
  openOption: OptionSpec | undefined
}

async function findPosition(tree: CommandTree, words: string[]): Promise<Position | undefined> {
  let node: CommandNode | undefined
  let argumentCount = 0
  let openOption: OptionSpec | undefined
  for (const word of words) {
    if (word === '--') return undefined
    if (openOption) {
      openOption = undefined
      continue
    }
    if (word.startsWith('-')) {
      const option = optionOf(node, word)
      openOption = option?.flags.includes('<') ? option : undefined
      continue
    }
    const child = await childOf(tree, node, word)
    if (child) node = child
    else if (node && !isGroup(node)) argumentCount += 1
    else return undefined
  }
  return { node, argumentCount, openOption }
}

async function childOf(
  tree: CommandTree,
  node: CommandNode | undefined,
  word: string,
): Promise<CommandNode | undefined> {
  if (node === undefined) return Object.hasOwn(tree, word) ? tree[word]!() : undefined
  return isGroup(node) ? node.commands.find(({ name }) => name === word || aliases[name] === word) : undefined
}

const optionOf = (node: CommandNode | undefined, flag: string) =>
  allOptions(node).find(({ flags }) => flags.split(/[ ,]+/).includes(flag))

const allOptions = (node: CommandNode | undefined): OptionSpec[] => [
  ...(node && !isGroup(node) ? (node.options ?? []) : []),
  ...globalOptions,
]

function optionsOf(node: CommandNode | undefined): Candidate[] {
  return allOptions(node).map(({ flags, description }) => ({
    word: /--?[\w-]+(?=[ [<]|$)/.exec(flags)?.[0] ?? flags,
    meaning: description,
  }))
}

async function nounsOf(tree: CommandTree): Promise<Candidate[]> {
  const names = Object.keys(tree).filter((name) => !name.startsWith('_'))
  const nodes = await Promise.all(names.map((name) => tree[name]!()))
  return nodes.map(({ name, summary }) => ({ word: name, meaning: summary }))
}

async function wordsOf(cli: Cli, node: CommandNode, argumentCount: number): Promise<Candidate[]> {
  if (isGroup(node)) return node.commands.map(({ name, summary }) => ({ word: name, meaning: summary }))
  const wanted = node.arguments ?? []
  const last = wanted.at(-1)
  const argument = wanted[argumentCount] ?? (last?.syntax.includes('...') ? last : undefined)
  return valuesOf(cli, argument?.complete)
}

async function valuesOf(cli: Cli, complete: Completion | undefined): Promise<Candidate[]> {
  if (complete === undefined || complete === 'file') return []
  if (typeof complete !== 'string') return complete.map(plainWord)
  if (complete === 'context') {
    return Object.entries(readContexts(cli.env).contexts).map(([word, context]) => ({
      word,
      meaning: context.api_url,
    }))
  }
  const resource = resources[complete]
  const items = await Promise.race([resource.list(cli), nothingAfterTimeout()])
  return items.map((item) => ({ word: resource.named(item).name, meaning: '' }))
}

function nothingAfterTimeout(): Promise<never[]> {
  return new Promise((resolve) => setTimeout(() => resolve([]), listTimeoutMs).unref())
}
