import type { Project } from '@slipway/sdk'
import { ownName, type Resource } from '../../core/resource.ts'

export const projects: Resource<Project> = {
  noun: 'project',
  title: 'project',
  example: 'research',
  columns: [
    { name: 'name', value: (project) => project.name },
    { name: 'version', value: (project) => project.version, spare: 1 },
    { name: 'id', value: (project) => project.id },
    { name: 'organization_id', value: (project) => project.organization_id, spare: 2 },
  ],
  list: (cli) => cli.client.collect('projectList', {}),
  named: ownName,
}
