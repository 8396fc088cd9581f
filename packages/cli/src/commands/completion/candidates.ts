import { vmTypeNames } from '@slipway/sdk'
import type { Cli } from '../../core/cli.ts'
import {
  type CommandNode,
  type CommandTree,
  type Completion,
  isGroup,
  type OptionSpec,
} from '../../core/command.ts'
import { readContexts } from '../../core/contexts.ts'
import { globalOptions } from '../../core/global-options.ts'
import { resources } from '../resources.ts'

/** A word that may stand where the cursor is, and what it means. */
interface Candidate {
  word: string
  meaning: string
}

/** A list that asks a live service must not keep the shell waiting. */
const listTimeoutMs = 2000

/** `words` is the line after `slipway`; its last word is the one being typed, perhaps empty. */
export async function candidatesFor(cli: Cli, tree: CommandTree, words: string[]): Promise<Candidate[]> {
  const typed = words.at(-1) ?? ''
  const position = await findPosition(tree, words.slice(0, -1))
  if (!position) return []
  const { node, argumentCount, openOption } = position
  const found = openOption
    ? await valuesOf(cli, openOption.complete)
    : typed.startsWith('-')
      ? optionsOf(node)
      : node
        ? await wordsOf(cli, node, argumentCount)
        : await nounsOf(tree)
  return found.filter(({ word }) => word.startsWith(typed))
}

/** Where the cursor is in the command tree. */
interface Position {
  /** The command or group whose words were typed; undefined before the first word. */
  node: CommandNode | undefined
  argumentCount: number
  /** The option whose value comes next. */
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
      const option = allOptions(node).find(({ flags }) => flags.split(/[ ,]+/).includes(word))
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
  return isGroup(node) ? node.commands.find(({ name }) => name === word) : undefined
}

const allOptions = (node: CommandNode | undefined): OptionSpec[] => [
  ...(node && !isGroup(node) ? (node.options ?? []) : []),
  ...globalOptions,
]

function optionsOf(node: CommandNode | undefined): Candidate[] {
  return allOptions(node).map(({ flags, description }) => ({
    word: /--[\w-]+/.exec(flags)?.[0] ?? flags,
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
  if (typeof complete !== 'string') return complete.map((word) => ({ word, meaning: '' }))
  if (complete === 'type') return vmTypeNames.map((word) => ({ word, meaning: '' }))
  if (complete === 'context') {
    return Object.entries(readContexts(cli.env).contexts).map(([word, context]) => ({
      word,
      meaning: context.api_url,
    }))
  }
  const resource = resources[complete]
  const things = await Promise.race([resource.list(cli), nothingAfterTimeout()])
  return things.map((thing) => ({ word: resource.named(thing).name, meaning: '' }))
}

function nothingAfterTimeout(): Promise<never[]> {
  return new Promise((resolve) => setTimeout(() => resolve([]), listTimeoutMs).unref())
}
