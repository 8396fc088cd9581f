import { UsageError } from '../errors/cli-error.ts'

export interface OutputFormat {
  kind: 'table' | 'json' | 'yaml'
  /** The column names in `columns=…`. */
  columns: string[] | undefined
  hasHeader: boolean
}

export function parseOutput(text: string, hasHeader: boolean): OutputFormat {
  if (text === 'table' || text === 'json' || text === 'yaml')
    return { kind: text, columns: undefined, hasHeader }
  const list = /^columns=(.+)$/.exec(text)?.[1]
  if (list) return { kind: 'table', columns: list.split(',').map((name) => name.trim()), hasHeader }
  throw new UsageError(`Unknown output format ${text}.`, [
    'Supported: table, json, yaml, columns=name,state,…',
  ])
}
