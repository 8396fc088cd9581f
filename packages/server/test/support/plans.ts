import { grownTables } from './grown-store.ts'

/** The parts of PostgreSQL's EXPLAIN (FORMAT JSON) that are used here. */
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

/** These nodes read all of their input before they return the first row. */
const gathers =
  /^(Sort|Incremental Sort|Aggregate|Hash|WindowAgg|Unique|Materialize|Bitmap Heap Scan|ModifyTable)$/

/**
 * Finds where a plan reads more as tables grow: a full scan of a table or an index, or more rows than any one resource
 * has. `indexRows` is the number of entries of each index, `tables` are the tables that grow.
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
    if (/\(\$\d+ IS NULL\) OR \([\w.]+ [<>]/.test(Filter)) found.push('skips over earlier pages')
    if (isGrown && !isCut && node['Plan Rows'] > manyRows)
      found.push(`reads ${node['Plan Rows']} rows of ${table}`)
    if (kind === 'Limit') found.push(...discardedRows(node))
    for (const child of node.Plans ?? []) {
      if (/Sort/.test(kind) && child['Plan Rows'] > manyRows) found.push(`sorts ${child['Plan Rows']} rows`)
      look(child, kind === 'Limit' || (isCut && !gathers.test(kind)))
    }
  }
  look(plan, false)
  return [...new Set(found)]
}

/**
 * Finds rows that are read for a page and then filtered or sorted. Their number is taken before a filter, because
 * PostgreSQL may expect almost no rows after it.
 */
function discardedRows(limit: PlanNode): string[] {
  let node = limit.Plans![0]!
  while (/^(Result|LockRows|Subquery Scan)$/.test(node['Node Type']) && node.Plans) node = node.Plans[0]!
  return /Sort/.test(node['Node Type']) ? readAtOnce(node) : []
}

function readAtOnce({ 'Node Type': kind, 'Relation Name': table = '', Plans = [] }: PlanNode): string[] {
  const rows = kind === 'Bitmap Heap Scan' && grownTables[table] ? Plans[0]!['Plan Rows'] : 0
  const below = Plans.flatMap(readAtOnce)
  return rows > moreThanPage ? [`reads ${rows} rows of ${table} for a page`, ...below] : below
}

/** Returns whether an index scan has no lookup key. The bound of a page (a coalesce) only says where to begin. */
function isWalk({ 'Index Cond': condition = '' }: PlanNode): boolean {
  return condition === '' || (/COALESCE/.test(condition) && !/ = /.test(condition))
}
