import { createProjectKey, revokeProjectKey } from '../../accounts/access-keys.ts'
import { listAccessKeys } from '../../store/identity/access-keys.ts'
import { accessKeyView } from '../../views/identity.ts'
import type { Handlers } from '../context.ts'
import { pageById } from '../pages.ts'

export const accessKeyHandlers: Handlers<'accessKeyList' | 'accessKeyCreate' | 'accessKeyDelete'> = {
  accessKeyList(context) {
    const { tx, params } = context
    const read = (before: string | null, limit: number) =>
      listAccessKeys(tx, params.project_id, before, limit)
    return pageById(context, read, accessKeyView)
  },

  async accessKeyCreate({ tx, by, body }) {
    const { row, secret } = await createProjectKey(tx, by, body)
    return { ...accessKeyView(row), secret }
  },

  async accessKeyDelete({ tx, by, params }) {
    await revokeProjectKey(tx, by, params.key_id)
    return {}
  },
}
