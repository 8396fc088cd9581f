import type { InstanceGroup } from '@slipway/sdk'
import { labelsColumn, labelsText } from '../../core/labels.ts'
import { ageColumn, idColumn, ownName, type Resource } from '../../core/resource.ts'
import { stateWord } from '../../output/state.ts'
import { ageOf } from '../../output/text.ts'

export const groups: Resource<InstanceGroup> = {
  noun: 'group',
  title: 'instance group',
  example: 'trainer',
  otherExample: 'evaluator',
  columns: [
    { name: 'name', value: (group) => group.name },
    { name: 'state', value: (group) => group.state, isState: true },
    {
      name: 'running',
      value: (group) => `${group.running_instance_count}/${group.desired_count}`,
      align: 'right',
    },
    { name: 'location', value: (group) => group.location, hideOrder: 2 },
    ageColumn,
    idColumn,
    labelsColumn,
  ],
  route: 'instanceGroupList',
  list: async (cli, filter) =>
    cli.client.collect('instanceGroupList', { project_id: await cli.project(), ...filter }),
  named: ownName,
  fields: (group) => [
    ['Name', group.name],
    ['Id', group.id],
    ['State', group.state],
    ['Running', `${group.running_instance_count} of ${group.desired_count}`],
    ['Location', group.location],
    ['Placement', group.placement_policy],
    ['On member loss', group.on_member_loss],
    ['Generation', String(group.generation)],
    [
      'Members',
      group.members
        .map(
          ({ rank, name, private_address, state }) =>
            `${rank}  ${name}  ${private_address}  ${stateWord(state)}`,
        )
        .join('\n') || '-',
    ],
    ['Labels', labelsText(group.labels) || '-'],
    ['Protected', group.deletion_protection ? 'from deletion' : 'no'],
    ['Created', `${group.created_at} (${ageOf(group.created_at)} ago)`],
  ],
}
