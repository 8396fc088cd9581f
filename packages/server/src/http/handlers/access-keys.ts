import { createAccessKey } from '../../accounts/credentials.ts'
import { invalidField, notFound } from '../../domain/failure.ts'
import { listAccessKeys, revokeAccessKey } from '../../store/identity/access-keys.ts'
import { accessKeyView } from '../../views/identity.ts'
import type { Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'

export const accessKeyHandlers = {
  async accessKeyList({ tx, params, query }) {
    const list = `access-keys ${params.project_id}`
    const before = readPageToken(list, query.page_token)
    const limit = pageLimit(query)
    const rows = await listAccessKeys(tx, params.project_id, before, limit + 1)
    return toPage(list, rows, limit, (row) => row.id, accessKeyView)
  },

  async accessKeyCreate({ tx, params, body, audit }) {
    const expiresAt = body.expires_at === undefined ? null : new Date(body.expires_at)
    if (expiresAt && Number.isNaN(expiresAt.getTime()))
      throw invalidField('expires_at', 'is not a point in time')
    const key = await createAccessKey(tx, {
      kind: 'project',
      projectId: params.project_id,
      name: body.name,
      role: body.role,
      expiresAt,
    })
    if (!key) throw invalidField('expires_at', 'must be in the future')
    await audit({
      type: 'access_key.created',
      resourceType: 'access_key',
      resourceId: key.row.id,
      data: accessKeyView(key.row),
    })
    return { ...accessKeyView(key.row), secret: key.secret }
  },

  async accessKeyDelete({ tx, params, audit }) {
    const row = await revokeAccessKey(tx, params.project_id, params.key_id)
    if (!row) throw notFound('access key')
    await audit({
      type: 'access_key.revoked',
      resourceType: 'access_key',
      resourceId: row.id,
      data: accessKeyView(row),
    })
    tx.signal('access')
    return {}
  },
} satisfies Handlers<'accessKeyList' | 'accessKeyCreate' | 'accessKeyDelete'>
