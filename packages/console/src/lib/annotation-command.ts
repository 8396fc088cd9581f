import type { Vm } from '@slipway/sdk'
import { labelOptions } from './labels.ts'
import { shellQuote } from './shell.ts'

type Annotations = Pick<Vm, 'name' | 'description' | 'labels' | 'deletion_protection'>

/** Returns the CLI commands that make the changes. The rename comes last: the other commands use the old name. */
export function annotationCommand(
  noun: string,
  resource: Annotations,
  changes: Partial<Annotations>,
): string {
  const { name, labels, deletion_protection } = changes
  const target = shellQuote(resource.name)
  const commands = [
    ...(labels ? [`slipway ${noun} label ${target} ${labelOptions(resource.labels, labels)}`] : []),
    ...(deletion_protection === undefined
      ? []
      : [`slipway ${noun} ${deletion_protection ? 'protect' : 'unprotect'} ${target}`]),
    ...(name === undefined ? [] : [`slipway ${noun} rename ${target} ${shellQuote(name || 'NAME')}`]),
  ].join(' &&\n')
  return [
    commands,
    changes.description === undefined ? '' : '# The CLI cannot change a description. Use curl.',
  ]
    .filter(Boolean)
    .join('\n')
}
