import type { InstanceGroupUpdate } from '@slipway/contract'
import { requireFound } from '../../../domain/failure.ts'
import { admitGroupCreate } from '../../../operations/group/create.ts'
import { admitGroupDelete, refuseProtected } from '../../../operations/group/delete.ts'
import { admitGroupStart, admitGroupStop } from '../../../operations/group/power.ts'
import {
  admitGroupResize,
  annotateInstanceGroup,
  setGroupTemplate,
} from '../../../operations/group/update.ts'
import { findGroup, type GroupRow, listGroups, lockGroup } from '../../../store/compute/instance-groups.ts'
import type { BegunOperation } from '../../../store/compute/operation-row.ts'
import { instanceGroupView } from '../../../views/instances.ts'
import type { Context, Handlers } from '../../context.ts'
import { commaList, labelFilter } from '../../filters.ts'
import { pageById } from '../../pages.ts'
import { operationResponse } from '../operations.ts'

type ChangeRoutes = 'instanceGroupUpdate' | 'instanceGroupStart' | 'instanceGroupStop' | 'instanceGroupDelete'

const lockGroupOrThrow = async ({ tx, by, params }: Context<ChangeRoutes>): Promise<GroupRow> =>
  requireFound('instance group', await lockGroup(tx, by.projectId, params.instance_group_id))

function update(
  context: Context<'instanceGroupUpdate'>,
  group: GroupRow,
  body: InstanceGroupUpdate,
): Promise<BegunOperation> {
  const { services, tx, by } = context
  if ('desired_count' in body) {
    if (body.desired_count > group.members.length) context.requirePayment()
    return admitGroupResize(tx, services.catalogueCache, by, group, body.desired_count)
  }
  return 'template_id' in body
    ? setGroupTemplate(tx, by, group, body.template_id)
    : annotateInstanceGroup(tx, by, group, body)
}

export const instanceGroupHandlers = {
  instanceGroupCreate: async ({ services, tx, by, body }) =>
    operationResponse(await admitGroupCreate(tx, services.catalogueCache, by, body)),

  instanceGroupList(context) {
    const { tx, project, query } = context
    const filter = { projectId: project.projectId, names: commaList(query.names), labels: labelFilter(query) }
    return pageById(
      context,
      (beforeId, limit) => listGroups(tx, { ...filter, beforeId, limit }),
      instanceGroupView,
    )
  },

  async instanceGroupGet({ tx, project, params }) {
    const group = await findGroup(tx, project.projectId, params.instance_group_id)
    return instanceGroupView(requireFound('instance group', group))
  },

  instanceGroupUpdate: async (context) =>
    operationResponse(await update(context, await lockGroupOrThrow(context), context.body)),

  instanceGroupStart: async (context) =>
    operationResponse(await admitGroupStart(context.tx, context.by, await lockGroupOrThrow(context))),

  instanceGroupStop: async (context) =>
    operationResponse(await admitGroupStop(context.tx, context.by, await lockGroupOrThrow(context))),

  async instanceGroupDelete(context) {
    const group = await lockGroupOrThrow(context)
    refuseProtected(group)
    return operationResponse(
      await admitGroupDelete(context.tx, context.by, group, context.query.delete_disks ?? false),
    )
  },
} satisfies Partial<Handlers>
