import { command } from '../../core/command.ts'
import { readContexts } from '../../core/contexts.ts'
import { type Column, printList } from '../../output/print.ts'

interface ContextRow {
  name: string
  is_current: boolean
  api_url: string
  project: string
  as: string
}

const columns: Column<ContextRow>[] = [
  { name: 'current', value: (row) => (row.is_current ? '*' : ' ') },
  { name: 'name', value: (row) => row.name },
  { name: 'api_url', value: (row) => row.api_url },
  { name: 'as', value: (row) => row.as },
  { name: 'project', value: (row) => row.project, hideOrder: 1 },
]

export const contextList = command({
  name: 'list',
  summary: 'list contexts',
  columns,
  examples: ['slipway context list'],
  async run(cli) {
    const { current, contexts } = readContexts(cli.env)
    const rows = Object.entries(contexts).map(([name, context]) => ({
      name,
      is_current: name === current,
      api_url: context.api_url,
      project: context.project_name ?? context.project ?? '',
      as: context.email ?? (context.access_key ? `key ${context.access_key.slice(0, 12)}…` : 'operator key'),
    }))
    await printList(cli, rows, columns, ['name', 'is_current', 'api_url', 'project', 'as'])
  },
})
