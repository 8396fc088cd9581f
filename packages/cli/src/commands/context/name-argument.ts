import type { ArgumentSpec } from '../../core/command.ts'

export const nameArgument: ArgumentSpec = {
  syntax: '<name>',
  description: 'name of the context',
  complete: 'context',
}
