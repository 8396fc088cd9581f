import { listEvents, stampEvents } from '../../store/events.ts'
import type { Handlers } from '../context.ts'
import { pageLimit, readPageToken, toPage } from '../pages.ts'
import { viewEvent } from '../views.ts'

export const eventHandlers: Handlers<'eventList'> = {
  async eventList({ tx, project, query, services }) {
    // What is committed shows at once, without waiting for the stamper's turn.
    await stampEvents(services.database)
    const key = `events ${project.projectId}`
    const limit = pageLimit(query)
    const before = readPageToken(key, query.page_token)
    const rows = await listEvents(tx, {
      projectId: project.projectId,
      beforePosition: before === null ? null : Number(before),
      resourceId: query.resource_id ?? null,
      type: query.type ?? null,
      actor: query.actor ?? null,
      limit: limit + 1,
    })
    return toPage(key, rows, limit, (row) => String(row.position), viewEvent)
  },
}
