import type { Queryable, Tx } from '../../postgres/database.ts'
import { type Columns, columns, statement } from '../../postgres/statement.ts'

export interface InvoiceRow {
  id: string
  month: string
  state: 'open' | 'issued' | 'paid'
  usd_cents: string
  issued_at: Date | null
  lines: InvoiceLineRow[]
}

interface InvoiceLineRow {
  project_id: string
  product_name: string
  unit: 'vm_hour' | 'gb_hour' | 'gpu_hour' | 'address_hour'
  quantity_ms: string
  usd_cents: string
}

// Inserts nothing if the month already has an invoice.
const insert = statement<
  { id: string },
  { id: string; organizationId: string; month: string; usdCents: string }
>(
  'invoice_insert',
  `INSERT INTO invoices (id, organization_id, month, state, usd_cents, paid_at)
   VALUES (:id, :organizationId, :month, CASE WHEN :usdCents::bigint = 0 THEN 'paid' ELSE 'issued' END,
           :usdCents::bigint, CASE WHEN :usdCents::bigint = 0 THEN slipway_now() END)
   ON CONFLICT (organization_id, month) DO NOTHING RETURNING id`,
)
const insertLines = statement<never, { invoiceId: string } & Columns<InvoiceLineRow>>(
  'invoice_lines_insert',
  `INSERT INTO invoice_lines (invoice_id, project_id, product_name, unit, quantity_ms, usd_cents)
   SELECT :invoiceId, *
   FROM unnest(:project_id::uuid[], :product_name::text[], :unit::text[], :quantity_ms::numeric[], :usd_cents::bigint[])`,
)

const withLines = `
  SELECT i.id, to_char(i.month, 'YYYY-MM-DD') AS month, i.state, i.usd_cents::text, i.issued_at,
         (SELECT coalesce(json_agg(json_build_object('project_id', l.project_id, 'product_name', l.product_name,
                                                     'unit', l.unit, 'quantity_ms', l.quantity_ms::text,
                                                     'usd_cents', l.usd_cents::text)
                                   ORDER BY l.project_id, l.unit DESC, l.product_name), '[]')
          FROM invoice_lines l WHERE l.invoice_id = i.id) AS lines
  FROM invoices i`

/** Lists invoices, the newest first; only those before `beforeMonth` if it is given. */
export const listInvoices = statement<
  InvoiceRow,
  { organizationId: string; beforeMonth: string | null; limit: number }
>(
  'invoice_list',
  `${withLines} WHERE i.organization_id = :organizationId AND i.month < coalesce(:beforeMonth::date, 'infinity')
   ORDER BY i.month DESC LIMIT :limit`,
).allBy('organizationId', 'beforeMonth', 'limit')
export const findInvoice = statement<InvoiceRow, { organizationId: string; id: string }>(
  'invoice_find',
  `${withLines} WHERE i.organization_id = :organizationId AND i.id = :id`,
).oneBy('organizationId', 'id')

/** Locks the invoices until the transaction ends, so that none is charged twice. */
export const listDueInvoices = statement<
  { id: string; month: string; usd_cents: string },
  { organizationId: string },
  Tx
>(
  'invoice_list_due',
  `SELECT id, to_char(month, 'YYYY-MM-DD') AS month, usd_cents::text FROM invoices
   WHERE organization_id = :organizationId AND state = 'issued' ORDER BY month FOR NO KEY UPDATE`,
).allBy('organizationId')
const markPaid = statement<{ id: string }, { organizationId: string; upToMonth: string }>(
  'invoice_mark_paid',
  `UPDATE invoices SET state = 'paid', paid_at = slipway_now()
   WHERE organization_id = :organizationId AND state = 'issued' AND month <= :upToMonth::date RETURNING id`,
)

const projectNames = statement<{ id: string; name: string }, { organizationId: string }>(
  'invoice_project_names',
  'SELECT id, name FROM projects WHERE organization_id = :organizationId',
)

/** Returns false if the month already has an invoice. */
export async function insertInvoice(
  tx: Tx,
  invoice: { id: string; organizationId: string; month: string; usdCents: string; lines: InvoiceLineRow[] },
): Promise<boolean> {
  const { id, organizationId, month, usdCents, lines } = invoice
  if (!(await insert.one(tx, { id, organizationId, month, usdCents }))) return false
  const members = ['project_id', 'product_name', 'unit', 'quantity_ms', 'usd_cents'] as const
  await insertLines.run(tx, { invoiceId: id, ...columns(lines, members) })
  return true
}

/** Marks all due invoices up to and including `upToMonth` as paid, and returns their ids. */
export const markInvoicesPaid = async (tx: Tx, organizationId: string, upToMonth: string) =>
  (await markPaid.all(tx, { organizationId, upToMonth })).map(({ id }) => id)

/** Includes deleted projects, because older invoices refer to them. */
export const listProjectNames = async (db: Queryable, organizationId: string) =>
  new Map((await projectNames.all(db, { organizationId })).map(({ id, name }) => [id, name]))
