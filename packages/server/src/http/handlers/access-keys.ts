import type { AccessKey } from '@slipway/contract'
import { createAccessKey } from '../../accounts/credentials.ts'
import { invalidField, notFound } from '../../domain/failure.ts'
import { type AccessKeyRow, listAccessKeys, revokeAccessKey } from '../../store/identity/access-keys.ts'
import { time } from '../../store/time.ts'
import type { Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'

export const accessKeyHandlers = {
  async accessKeyList({ tx, params, query }) {
    const list = `access-keys ${params.project_id}`
    const before = readPageToken(list, query.page_token)
    const limit = pageLimit(query)
    const rows = await listAccessKeys(tx, params.project_id, before, limit + 1)
    return toPage(list, rows, limit, (row) => row.id, viewAccessKey)
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
      data: viewAccessKey(key.row),
    })
    return { ...viewAccessKey(key.row), secret: key.secret }
  },

  async accessKeyDelete({ services, tx, params, audit }) {
    const row = await revokeAccessKey(tx, params.project_id, params.key_id)
    if (!row) throw notFound('access key')
    await audit({
      type: 'access_key.revoked',
      resourceType: 'access_key',
      resourceId: row.id,
      data: viewAccessKey(row),
    })
    tx.signal('access')
    return {}
  },
} satisfies Handlers<'accessKeyList' | 'accessKeyCreate' | 'accessKeyDelete'>

const viewAccessKey = (row: AccessKeyRow): AccessKey => ({
  id: row.id,
  name: row.name,
  role: row.role,
  prefix: row.prefix,
  created_at: time(row.created_at),
  expires_at: time(row.expires_at),
  last_used_at: time(row.last_used_at),
})
