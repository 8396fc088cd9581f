import { grownTables } from './grown-store.ts'

/** What is read here of PostgreSQL's EXPLAIN (FORMAT JSON). */
export interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  Filter?: string
  'Plan Rows': number
  Plans?: PlanNode[]
}

/** More rows than one resource of a tenant has. A plan that filters this number of rows reads unrelated rows. */
const manyRows = 20_000

/** More rows than a page. A plan that sorts this number of rows reads all rows of a project or a tenant. */
const moreThanPage = 120

/** These read all of their input before they give the first row. */
const gathers =
  /^(Sort|Incremental Sort|Aggregate|Hash|WindowAgg|Unique|Materialize|Bitmap Heap Scan|ModifyTable)$/

/**
 * Tells where a plan reads more as tables grow: a table or an index from one end to the other, or more rows than any one
 * thing has. `indexRows` says how many entries each index has, `tables` which tables are long.
 */
export function growthOf(
  plan: PlanNode,
  indexRows: ReadonlyMap<string, number>,
  tables: Readonly<Record<string, number>> = grownTables,
): string[] {
  const found: string[] = []
  /** `isCut`: the parent node stops after one page. */
  function look(node: PlanNode, isCut: boolean): void {
    const { 'Node Type': kind, 'Relation Name': table = '', 'Index Name': index = '', Filter = '' } = node
    const isGrown = tables[table] !== undefined
    if (kind === 'Seq Scan' && isGrown) found.push(`reads all of ${table}`)
    if ((indexRows.get(index) ?? 0) > manyRows && isWalk(node) && !(isCut && !Filter))
      found.push(`walks ${index}`)
    if (/\(\$\d+ IS NULL\) OR \([\w.]+ [<>]/.test(Filter)) found.push('passes over the pages before')
    if (isGrown && !isCut && node['Plan Rows'] > manyRows)
      found.push(`reads ${node['Plan Rows']} rows of ${table}`)
    if (kind === 'Limit') found.push(...sortedOut(node))
    for (const child of node.Plans ?? []) {
      if (/Sort/.test(kind) && child['Plan Rows'] > manyRows) found.push(`sorts ${child['Plan Rows']} rows`)
      look(child, kind === 'Limit' || (isCut && !gathers.test(kind)))
    }
  }
  look(plan, false)
  return [...new Set(found)]
}

/**
 * What is read for the sake of a page that is then sorted out of it. How many rows that are shows before a filter: after it
 * PostgreSQL may expect next to none.
 */
function sortedOut(limit: PlanNode): string[] {
  let node = limit.Plans![0]!
  while (/^(Result|LockRows|Subquery Scan)$/.test(node['Node Type']) && node.Plans) node = node.Plans[0]!
  return /Sort/.test(node['Node Type']) ? readAtOnce(node) : []
}

function readAtOnce({ 'Node Type': kind, 'Relation Name': table = '', Plans = [] }: PlanNode): string[] {
  const rows = kind === 'Bitmap Heap Scan' && grownTables[table] ? Plans[0]!['Plan Rows'] : 0
  const below = Plans.flatMap(readAtOnce)
  return rows > moreThanPage ? [`reads ${rows} rows of ${table} for a page`, ...below] : below
}

/** Nothing is looked up. The bound of a page (a coalesce) says only where to begin. */
function isWalk({ 'Index Cond': condition = '' }: PlanNode): boolean {
  return condition === '' || (/COALESCE/.test(condition) && !/ = /.test(condition))
}
