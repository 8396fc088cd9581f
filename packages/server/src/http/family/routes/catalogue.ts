import { withoutEmpty } from '../members.ts'
import { organizationShape, projectShape, quotaShapes, typeShape } from '../shapes/catalogue.ts'
import { defaultProject, type FamilyRoute, get, post, put, remove } from './route.ts'

const projects = '/organizations/projects'

export const catalogueRoutes: FamilyRoute[] = [
  get(projects, async (call) => {
    const name = call.query.project_name
    const found = await call.ownApi('projectList')
    return { items: found.filter((project) => !name || project.name === name).map(projectShape) }
  }),
  get(`${projects}/:project_id`, async (call) => projectShape(await call.ownApi('projectGet'))),
  post(projects, async (call) => {
    const { name, organization_id } = call.body
    return {
      project: projectShape(
        await call.ownApi('projectCreate', { body: withoutEmpty({ name, organization_id }) }),
      ),
    }
  }),
  put(projects, async (call) => {
    const params = { project_id: call.query.project_id ?? '' }
    const body = withoutEmpty({ name: call.body.name })
    return { project: projectShape(await call.ownApi('projectUpdate', { params, body })) }
  }),
  remove(`${projects}/:project_id`, (call) => call.ownApi('projectDelete')),

  get('/organizations/entities', async (call) => ({
    items: (await call.ownApi('organizationList')).map(organizationShape),
  })),
  get('/users/identities', async (call) => {
    const { caller } = await call.ownApi('rootGet')
    return { identity: { id: caller.id, email: caller.email, name: caller.email, role: caller.role } }
  }),

  get('/locations', async (call) => {
    const params = await defaultProject(call)
    const items = params ? (await call.ownApi('locationList', { params })).items : []
    return { items: items.map(({ name }) => name) }
  }),
  get('/capacities', async (call) => {
    const params = await defaultProject(call)
    const { product_name, location } = call.query
    const query = { product_name, location }
    return params ? call.ownApi('capacityList', { params, query }) : { items: [] }
  }),
  get('/compute/images', async (call) => {
    const params = await defaultProject(call)
    return params ? call.ownApi('imageList', { params }) : { items: [] }
  }),
  get('/projects/:project_id/compute/vms/types', async (call) => ({
    items: (await call.ownApi('specList')).items.map(typeShape),
  })),
  get('/projects/:project_id/quotas', async (call) => ({
    quotas: quotaShapes((await call.ownApi('quotaList')).items),
  })),
  // This service has no InfiniBand.
  get('/projects/:project_id/networking/ib-networks', async (call) => {
    await call.enter('networkList')
    return { items: [] }
  }),
]
