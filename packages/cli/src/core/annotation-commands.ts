import type { Operation } from '@slipway/sdk'
import { UsageError } from '../errors/cli-error.ts'
import type { Cli } from './cli.ts'
import { type AnyCommand, command } from './command.ts'
import { type Labels, labelsText, parseLabels } from './labels.ts'
import { withArticle } from './names.ts'
import { follow } from './progress.ts'
import { idOf, type Resource, refArgument } from './resource.ts'

/** Fields that are stored only in the database, so that changing them does not affect the host. */
interface Change {
  name?: string
  labels?: Labels
  deletion_protection?: boolean
}

/** Reads and changes resources of one kind. A change may return an operation, which has often already ended. */
interface KindWithLabels<T extends object> extends ChangeableKind<T, Change> {
  get(cli: Cli, id: string): Promise<{ labels: Labels }>
}

interface ChangeableKind<T extends object, C> {
  resource: Resource<T>
  change(cli: Cli, id: string, change: C): Promise<{ operation?: Operation } | object>
}

async function apply<T extends object, C>(cli: Cli, kind: ChangeableKind<T, C>, id: string, change: C) {
  const response = await kind.change(cli, id, change)
  if ('operation' in response && response.operation?.state === 'IN_PROGRESS')
    await follow(cli, 'Changing', response.operation, {})
}

export function labelCommand<T extends object>(kind: KindWithLabels<T>): AnyCommand {
  const { noun, title, example } = kind.resource
  return command<{ ref: string; labels: string[]; remove?: string[] }>({
    name: 'label',
    summary: `set or remove labels of ${withArticle(title)}; other labels do not change`,
    arguments: [
      refArgument(kind.resource),
      { syntax: '[labels...]', description: 'labels to set, as KEY=VALUE, separated by spaces' },
    ],
    options: [{ flags: '--remove <keys>', description: 'keys to remove, separated by commas', isList: true }],
    examples: [`slipway ${noun} label ${example} team=ml`, `slipway ${noun} label ${example} --remove team`],
    async run(cli, { ref, labels, remove = [] }) {
      if (labels.length + remove.length === 0)
        throw new UsageError('Nothing to change. Use KEY=VALUE or --remove.')
      const id = await idOf(cli, kind.resource, ref)
      const next = { ...(await kind.get(cli, id)).labels, ...parseLabels(labels) }
      for (const key of remove) delete next[key]
      await apply(cli, kind, id, { labels: next })
      cli.note(`${ref}: ${labelsText(next) || 'no labels'}`)
    },
  })
}

export function renameCommand<T extends object>(kind: ChangeableKind<T, { name: string }>): AnyCommand {
  const { noun, title, example } = kind.resource
  return command<{ ref: string; name: string }>({
    name: 'rename',
    summary: `rename ${withArticle(title)}`,
    arguments: [refArgument(kind.resource), { syntax: '<name>', description: 'the new name' }],
    examples: [`slipway ${noun} rename ${example} ${example}-old`],
    async run(cli, { ref, name }) {
      await apply(cli, kind, await idOf(cli, kind.resource, ref), { name })
      cli.note(`Renamed ${ref} to ${name}.`)
    },
  })
}

/** Returns the commands `protect` and `unprotect`. */
export function protectCommands<T extends object>(kind: KindWithLabels<T>): AnyCommand[] {
  const { noun, title, example } = kind.resource
  const make = (name: string, deletion_protection: boolean, summary: string) =>
    command<{ ref: string }>({
      name,
      summary,
      arguments: [refArgument(kind.resource)],
      examples: [`slipway ${noun} ${name} ${example}`],
      async run(cli, { ref }) {
        await apply(cli, kind, await idOf(cli, kind.resource, ref), { deletion_protection })
        cli.note(`${ref} is ${deletion_protection ? '' : 'no longer '}protected from deletion.`)
      },
    })
  return [
    make('protect', true, `enable deletion protection of ${withArticle(title)}`),
    make('unprotect', false, `disable deletion protection of ${withArticle(title)}`),
  ]
}
