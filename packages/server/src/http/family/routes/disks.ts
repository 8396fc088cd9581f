import { withoutEmpty } from '../members.ts'
import { diskShape } from '../shapes/disks.ts'
import { begin, type FamilyRoute, get, patch, post, remove } from './route.ts'

const path = '/projects/:project_id/storage/disks'
const type = 'disk'

export const diskRoutes: FamilyRoute[] = [
  post(path, (call) =>
    call.operation({ name: 'CREATE', type }, () => {
      const { name, size, location, type, block_size, snapshot_id } = call.body
      const body = withoutEmpty({ name, size, location, type, block_size, snapshot_id })
      return begin(call.ownApi('diskCreate', { body }))
    }),
  ),
  get(path, async (call) => ({ items: (await call.all('diskList')).map(diskShape) })),
  get(`${path}/:disk_id`, async (call) => diskShape(await call.ownApi('diskGet'))),
  patch(`${path}/:disk_id`, (call) =>
    call.operation({ name: 'RESIZE', type, id: call.params.disk_id! }, () =>
      begin(call.ownApi('diskUpdate', { body: withoutEmpty({ size: call.body.size }) })),
    ),
  ),
  remove(`${path}/:disk_id`, (call) =>
    call.operation({ name: 'DELETE', type, id: call.params.disk_id! }, () =>
      begin(call.ownApi('diskDelete')),
    ),
  ),
]
