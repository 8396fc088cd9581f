import type { InstanceTemplateCreate, LabelSelector, Labels } from '@slipway/contract'
import type { Queryable, Tx } from '../../postgres/database.ts'
import { fitsLabels, type LabelParams, labelParams } from '../../postgres/labels.ts'
import { filteredStatement, isBefore, type PageParams, statement } from '../../postgres/statement.ts'

/** The fields of a template, without its name. */
export type TemplateBody = Omit<
  InstanceTemplateCreate,
  'name' | 'new_version' | 'id' | 'version' | 'project_id' | 'created_at'
>

export interface InstanceTemplateRow {
  id: string
  project_id: string
  name: string
  version: number
  body: TemplateBody
  labels: Labels
  created_at: Date
}

interface TemplateFilter extends PageParams {
  projectId: string
  names: string[] | null
  isLatest: boolean | null
}

const columns = 't.id, t.project_id, t.name, t.version, t.body, t.labels, t.created_at'

const list = filteredStatement<InstanceTemplateRow, TemplateFilter & LabelParams>(
  'instance_template_list',
  (given) => `SELECT ${columns} FROM instance_templates t
   WHERE t.project_id = :projectId AND ${isBefore('t.id')} AND ${fitsLabels('t.labels')} ${given}
   ORDER BY t.id DESC LIMIT :limit`,
  {
    names: 't.name = ANY (:names)',
    isLatest: {
      true: `NOT EXISTS (SELECT FROM instance_templates later
               WHERE later.project_id = t.project_id AND later.name = t.name AND later.version > t.version)`,
      false: 'true',
    },
  },
)

export const findInstanceTemplate = statement<InstanceTemplateRow, { projectId: string; id: string }>(
  'instance_template_by_id',
  `SELECT ${columns} FROM instance_templates t WHERE t.project_id = :projectId AND t.id = :id`,
).oneBy('projectId', 'id')

// Waits for a concurrent insert of the same version; the next attempt then uses the next number.
const insert = statement<InstanceTemplateRow, NewTemplate>(
  'instance_template_insert',
  `INSERT INTO instance_templates AS t (id, project_id, name, version, body, labels)
   SELECT :id, :projectId, :name, coalesce(max(version), 0) + 1, :body::json, :labels::jsonb
   FROM instance_templates WHERE project_id = :projectId AND name = :name
   HAVING :isNewVersion OR count(*) = 0
   ON CONFLICT (project_id, name, version) DO NOTHING RETURNING ${columns}`,
)

const exists = statement<{ id: string }, { projectId: string; name: string }>(
  'instance_template_named',
  'SELECT id FROM instance_templates WHERE project_id = :projectId AND name = :name LIMIT 1',
)

export const deleteInstanceTemplateRow = statement<
  InstanceTemplateRow,
  { projectId: string; id: string },
  Tx
>(
  'instance_template_delete',
  `DELETE FROM instance_templates t WHERE t.project_id = :projectId AND t.id = :id RETURNING ${columns}`,
).oneBy('projectId', 'id')

export const deleteInstanceTemplatesOfProject = statement<never, { projectId: string }, Tx>(
  'instance_template_delete_of_project',
  'DELETE FROM instance_templates WHERE project_id = :projectId',
).runBy('projectId')

interface NewTemplate {
  id: string
  projectId: string
  name: string
  /** JSON text, because the driver would send an object as jsonb, which changes the order of its fields. */
  body: string
  labels: Labels
  isNewVersion: boolean
}

export const listInstanceTemplates = (
  db: Queryable,
  { labels, ...filter }: TemplateFilter & { labels: LabelSelector | null },
) => list.all(db, { ...filter, ...labelParams(labels) })

/** Inserts the next version. Returns undefined if the name is taken and no new version is wanted. */
export async function insertInstanceTemplate(
  tx: Tx,
  template: NewTemplate,
): Promise<InstanceTemplateRow | undefined> {
  for (;;) {
    const row = await insert.one(tx, template)
    if (row) return row
    if (!template.isNewVersion && (await exists.one(tx, template))) return undefined
  }
}
