import type { Database, Queryable } from '../../src/postgres/database.ts'

export interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Shared Hit Blocks'?: number
  'Shared Read Blocks'?: number
  Plans?: PlanNode[]
}

/** Returns the plan of each statement of `work`. The statements run, and each returns `row` to `work`. */
export async function plansOf(
  database: Database,
  row: Record<string, unknown>,
  work: (db: Queryable) => Promise<unknown>,
): Promise<PlanNode[]> {
  const plans: PlanNode[] = []
  await work({
    async query({ text, values = [] }) {
      const explained = await database.query({
        text: `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`,
        values,
      })
      plans.push(explained.rows[0]['QUERY PLAN'][0].Plan)
      return { rows: [row] } as never
    },
  })
  return plans
}

export const scansOf = (node: PlanNode, table: string): PlanNode[] => [
  ...(node['Relation Name'] === table ? [node] : []),
  ...(node.Plans ?? []).flatMap((inner) => scansOf(inner, table)),
]

export const blocksOf = (node: PlanNode): number =>
  (node['Shared Hit Blocks'] ?? 0) + (node['Shared Read Blocks'] ?? 0)
