import { Failure } from '../../../domain/failure.ts'
import { type Members, withoutEmpty } from '../members.ts'
import type { FamilyCall } from '../request.ts'
import { imageShape, snapshotShape } from '../shapes/images.ts'
import type { FamilyOperation } from '../shapes/operations.ts'
import { begin, type FamilyRoute, get, patch, post, remove } from './route.ts'

const images = '/projects/:project_id/compute/custom-images'
const snapshots = '/projects/:project_id/storage/snapshots'

const imageRoutes: FamilyRoute[] = [
  post(images, (call) =>
    call.operation({ name: 'CREATE', type: 'custom_image' }, () => {
      const { name, description, tags, DiskID, disk_id } = call.body
      return createImage(call, withoutEmpty({ name, description, tags, disk_id: DiskID ?? disk_id }))
    }),
  ),
  get(images, async (call) => ({ items: (await call.all('customImageList')).map(imageShape) })),
  get(`${images}/:custom_image_id`, async (call) => imageShape(await call.ownApi('customImageGet'))),
  ...(['', '/edit-tags'] as const).map((suffix) =>
    patch(`${images}/:custom_image_id${suffix}`, (call) =>
      call.change({ name: 'UPDATE', type: 'custom_image', id: call.params.custom_image_id! }, async () => {
        const { description, tags } = call.body
        const body = suffix ? { tags } : { description }
        return imageShape(await call.ownApi('customImageUpdate', { body }))
      }),
    ),
  ),
  remove(`${images}/:custom_image_id`, (call) =>
    call.operation({ name: 'DELETE', type: 'custom_image', id: call.params.custom_image_id! }, () =>
      begin(call.ownApi('customImageDelete')),
    ),
  ),
]

/**
 * If a client sends the id of a VM's OS disk, which Slipway's own API does not list as a disk, the VM becomes
 * the source.
 */
async function createImage(call: FamilyCall, { disk_id, ...image }: Members): Promise<FamilyOperation> {
  try {
    return await begin(call.ownApi('customImageCreate', { body: { ...image, disk_id } }))
  } catch (error) {
    if (!(error instanceof Failure && error.code === 'not_found')) throw error
    const vm = (await call.all('vmList')).find(({ disks }) => disks.some(({ id }) => id === disk_id))
    if (!vm) throw error
    return begin(call.ownApi('customImageCreate', { body: { ...image, vm_id: vm.id } }))
  }
}

const snapshotRoutes: FamilyRoute[] = [
  post(snapshots, (call) =>
    call.operation({ name: 'CREATE', type: 'snapshot' }, () => {
      const { name, disk_id } = call.body
      return begin(call.ownApi('snapshotCreate', { body: withoutEmpty({ name, disk_id }) }))
    }),
  ),
  get(snapshots, async (call) => ({ items: (await call.all('snapshotList')).map(snapshotShape) })),
  get(`${snapshots}/:snapshot_id`, async (call) => snapshotShape(await call.ownApi('snapshotGet'))),
  patch(`${snapshots}/:snapshot_id`, (call) =>
    call.change({ name: 'UPDATE', type: 'snapshot', id: call.params.snapshot_id! }, async () =>
      snapshotShape(await call.ownApi('snapshotUpdate', { body: withoutEmpty({ name: call.body.name }) })),
    ),
  ),
  remove(`${snapshots}/:snapshot_id`, (call) =>
    call.operation({ name: 'DELETE', type: 'snapshot', id: call.params.snapshot_id! }, () =>
      begin(call.ownApi('snapshotDelete')),
    ),
  ),
]

export const captureRoutes = [...imageRoutes, ...snapshotRoutes]
