import type { Project } from '@slipway/sdk'
import { labelsColumn } from '../../core/labels.ts'
import { ownName, type Resource } from '../../core/resource.ts'

export const projects: Resource<Project> = {
  noun: 'project',
  title: 'project',
  example: 'research',
  otherExample: 'experiments',
  columns: [
    { name: 'name', value: (project) => project.name },
    { name: 'version', value: (project) => project.version, hideOrder: 1 },
    { name: 'id', value: (project) => project.id },
    { name: 'organization_id', value: (project) => project.organization_id, hideOrder: 2 },
    labelsColumn,
  ],
  route: 'projectList',
  list: (cli, filter) => cli.client.collect('projectList', { label_selector: filter?.label_selector }),
  named: ownName,
}
