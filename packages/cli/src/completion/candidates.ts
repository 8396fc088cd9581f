import { vmTypeNames } from '@slipway/sdk'
import type { Cli } from '../core/cli.ts'
import type { AnyCommand, Completion, GroupSpec, OptionSpec } from '../core/command.ts'
import { isGroup } from '../core/command.ts'
import { readContexts } from '../core/contexts.ts'
import type { Resource } from '../core/resource.ts'
import { globalOptions } from '../program.ts'
import { registry } from '../registry.ts'
import * as resources from '../resources.ts'

/** What may stand where the cursor is: a word, and what it means. */
export interface Candidate {
  word: string
  meaning: string
}

/** A list that asks a live service must not keep the shell waiting. */
const patienceMs = 2000

/** `words` is the line after `slipway`; its last word is the one being typed, perhaps empty. */
export async function candidatesFor(cli: Cli, words: string[]): Promise<Candidate[]> {
  const typed = words.at(-1) ?? ''
  const walk = await walkTo(words.slice(0, -1))
  if (!walk) return []
  const { spec, positionals, openOption } = walk
  const found = openOption
    ? await valuesOf(cli, openOption.complete)
    : typed.startsWith('-')
      ? optionsOf(spec)
      : await wordsOf(cli, spec, positionals)
  return found.filter(({ word }) => word.startsWith(typed))
}

interface Walk {
  spec: AnyCommand | GroupSpec | undefined
  positionals: number
  /** The option whose value comes next. */
  openOption: OptionSpec | undefined
}

async function walkTo(words: string[]): Promise<Walk | undefined> {
  let spec: Walk['spec']
  let positionals = 0
  let openOption: OptionSpec | undefined
  for (const word of words) {
    if (word === '--') return undefined
    if (openOption) {
      openOption = undefined
      continue
    }
    if (word.startsWith('-')) {
      const option = allOptions(spec).find(({ flags }) => flags.split(/[ ,]+/).includes(word))
      openOption = option?.flags.includes('<') ? option : undefined
      continue
    }
    const next = await childOf(spec, word)
    if (next) spec = next
    else if (spec && !isGroup(spec)) positionals += 1
    else return undefined
  }
  return { spec, positionals, openOption }
}

async function childOf(spec: Walk['spec'], word: string): Promise<Walk['spec']> {
  if (spec === undefined) return Object.hasOwn(registry, word) ? registry[word]!() : undefined
  return isGroup(spec) ? spec.commands.find(({ name }) => name === word) : undefined
}

const allOptions = (spec: Walk['spec']): OptionSpec[] => [
  ...(spec && !isGroup(spec) ? (spec.options ?? []) : []),
  ...globalOptions,
]

function optionsOf(spec: Walk['spec']): Candidate[] {
  return allOptions(spec).map(({ flags, description }) => ({
    word: /--[\w-]+/.exec(flags)?.[0] ?? flags,
    meaning: description,
  }))
}

async function wordsOf(cli: Cli, spec: Walk['spec'], positionals: number): Promise<Candidate[]> {
  if (spec === undefined) {
    const names = Object.keys(registry).filter((name) => !name.startsWith('_'))
    const specs = await Promise.all(names.map((name) => registry[name]!()))
    return specs.map(({ name, summary }) => ({ word: name, meaning: summary }))
  }
  if (isGroup(spec)) return spec.commands.map(({ name, summary }) => ({ word: name, meaning: summary }))
  const wanted = spec.arguments ?? []
  const last = wanted.at(-1)
  const argument = wanted[positionals] ?? (last?.syntax.includes('...') ? last : undefined)
  return valuesOf(cli, argument?.complete)
}

const resourceOf: Partial<Record<Completion, Resource<never>>> = {
  vm: resources.vms,
  disk: resources.disks,
  network: resources.networks,
  subnet: resources.subnets,
  firewall: resources.firewallRules,
  key: resources.accessKeys,
  member: resources.members,
  project: resources.projects,
  org: resources.organizations,
  webhook: resources.webhooks,
  image: resources.images,
  location: resources.locations,
  operation: resources.operations,
  host: resources.hosts,
  user: resources.users,
} as unknown as Partial<Record<Completion, Resource<never>>>

async function valuesOf(cli: Cli, complete: Completion | string[] | undefined): Promise<Candidate[]> {
  if (complete === undefined || complete === 'file') return []
  if (Array.isArray(complete)) return complete.map((word) => ({ word, meaning: '' }))
  if (complete === 'type') return vmTypeNames.map((word) => ({ word, meaning: '' }))
  if (complete === 'context') {
    return Object.entries(readContexts(cli.env).contexts).map(([word, context]) => ({
      word,
      meaning: context.api_url,
    }))
  }
  const resource = resourceOf[complete]
  if (!resource) return []
  const things = await Promise.race([resource.list(cli), afterPatience()])
  return things.map((thing) => ({ word: resource.named(thing).name, meaning: '' }))
}

function afterPatience(): Promise<never[]> {
  return new Promise((resolve) => setTimeout(() => resolve([]), patienceMs).unref())
}
