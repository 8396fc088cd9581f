import type { ListItem } from '@slipway/sdk'
import { labelsText } from '../../core/labels.ts'
import { ageColumn, idColumn, ownName, type Resource } from '../../core/resource.ts'
import { ageOf } from '../../output/text.ts'

type Template = ListItem<'instanceTemplateList'>

/** A name means the latest version; earlier versions need an id. */
export const templates: Resource<Template> = {
  noun: 'template',
  title: 'instance template',
  example: 'trainer',
  otherExample: 'evaluator',
  reference: 'name of the instance template (its latest version), or id of one version',
  columns: [
    { name: 'name', value: (template) => template.name },
    { name: 'version', value: (template) => String(template.version), align: 'right' },
    { name: 'type', value: (template) => template.type ?? '' },
    { name: 'location', value: (template) => template.location ?? '', hideOrder: 2 },
    { name: 'image', value: (template) => template.image ?? '', hideOrder: 3 },
    ageColumn,
    idColumn,
    { name: 'labels', value: (template) => labelsText(template.labels ?? {}), isExtra: true },
  ],
  route: 'instanceTemplateList',
  list: async (cli, filter) =>
    cli.client.collect('instanceTemplateList', { project_id: await cli.project(), latest: true, ...filter }),
  named: ownName,
  fields: (template) => {
    const { id, name, version, project_id, created_at, ...members } = template
    return [
      ['Name', name],
      ['Version', String(version)],
      ['Id', id],
      ...Object.entries(members).map(([member, value]): [string, string] => [
        member,
        typeof value === 'string' ? value.trimEnd() : JSON.stringify(value),
      ]),
      ['Created', `${created_at} (${ageOf(created_at)} ago)`],
    ]
  },
}
