import type { Quota, RouteAnswer } from '@slipway/sdk'
import { type AnyCommand, command, type GroupSpec } from '../../../core/command.ts'
import { listCommand } from '../../../core/generic-commands.ts'
import { parsePair } from '../../../core/parse.ts'
import { idOf, type Resource, refArgument } from '../../../core/resource.ts'
import { type Column, printList, printOne } from '../../../output/print.ts'
import { ageOf } from '../../../output/text.ts'
import { users } from '../user/resource.ts'

type AdminOrganization = RouteAnswer<'adminOrganizationUpdate'>
const organizations: Resource<AdminOrganization> = {
  noun: 'org',
  title: 'organization',
  example: 'harbour-labs',
  columns: [
    { name: 'name', value: (organization) => organization.name },
    {
      name: 'state',
      value: (organization) => (organization.suspended ? 'suspended' : 'active'),
      isState: true,
    },
    { name: 'age', value: (organization) => ageOf(organization.created_at), align: 'right', spare: 1 },
    { name: 'id', value: (organization) => organization.id },
  ],
  list: (cli) => cli.operator.collect('adminOrganizationList', {}),
  named: (organization) => organization,
}

function suspendOrganization(name: 'suspend' | 'restore', summary: string): AnyCommand {
  return command<{ ref: string }>({
    name,
    summary,
    arguments: [refArgument(organizations)],
    examples: [`slipway admin org ${name} harbour-labs`],
    async run(cli, { ref }) {
      const organization_id = await idOf(cli, organizations, ref)
      await printOne(
        cli,
        await cli.operator.adminOrganizationUpdate({ organization_id }, { suspended: name === 'suspend' }),
      )
    },
  })
}

export const adminOrg: GroupSpec = {
  name: 'org',
  summary: 'organizations',
  commands: [
    listCommand(organizations, { group: 'admin' }),
    command<{ name: string }>({
      name: 'create',
      summary: 'create an organization',
      arguments: [{ syntax: '<name>', description: 'its name' }],
      examples: ['slipway admin org create "Harbour Labs"'],
      async run(cli, { name }) {
        await printOne(cli, await cli.operator.adminOrganizationCreate({ name }))
      },
    }),
    suspendOrganization('suspend', 'suspend an organization'),
    suspendOrganization('restore', 'lift a suspension'),
  ],
}

export const adminProject: GroupSpec = {
  name: 'project',
  summary: 'projects of all organizations',
  commands: [
    command({
      name: 'list',
      summary: 'list the projects of all organizations',
      examples: ['slipway admin project list', 'slipway admin project list -o json'],
      async run(cli) {
        await printList(cli, await cli.operator.collect('adminProjectList', {}), [
          { name: 'name', value: (project) => project.name },
          { name: 'organization', value: (project) => project.organization_name },
          { name: 'id', value: (project) => project.id },
        ])
      },
    }),
  ],
}

function suspendUser(name: 'suspend' | 'restore', summary: string): AnyCommand {
  return command<{ ref: string }>({
    name,
    summary,
    arguments: [refArgument(users)],
    examples: [`slipway admin user ${name} ada@example.com`],
    async run(cli, { ref }) {
      const user_id = await idOf(cli, users, ref)
      await printOne(cli, await cli.operator.adminUserUpdate({ user_id }, { suspended: name === 'suspend' }))
    },
  })
}

interface UserInput {
  email: string
  org?: string
  role?: 'viewer' | 'member' | 'admin' | 'owner'
  operator?: boolean
}

export const adminUser: GroupSpec = {
  name: 'user',
  summary: 'users',
  commands: [
    listCommand(users, { group: 'admin' }),
    command<UserInput>({
      name: 'create',
      summary: 'add a user',
      arguments: [{ syntax: '<email>', description: 'e-mail address' }],
      options: [
        { flags: '--org <organization>', description: 'make them a member of it' },
        {
          flags: '--role <role>',
          description: 'viewer, member, admin or owner',
          complete: ['viewer', 'member', 'admin', 'owner'],
        },
        { flags: '--operator', description: 'may run the service' },
      ],
      examples: ['slipway admin user create ada@example.com --org harbour-labs --role owner'],
      async run(cli, { email, org, role, operator }) {
        const organization_id = org && (await idOf(cli, organizations, org))
        const body = { email, organization_id: organization_id || undefined, role, is_operator: operator }
        await printOne(cli, await cli.operator.adminUserCreate(body))
      },
    }),
    suspendUser('suspend', 'suspend a user'),
    suspendUser('restore', 'lift a suspension'),
  ],
}

const quotaColumns: Column<Quota>[] = [
  { name: 'name', value: (quota) => quota.name },
  { name: 'used', value: (quota) => quota.used, align: 'right' },
  { name: 'max', value: (quota) => quota.max, align: 'right' },
  { name: 'available', value: (quota) => quota.available, align: 'right' },
]

export const adminQuota: GroupSpec = {
  name: 'quota',
  summary: 'quotas of a project',
  commands: [
    command<{ of: string }>({
      name: 'list',
      summary: 'list the quotas of a project',
      arguments: [{ syntax: '<of>', description: 'id of the project' }],
      examples: ['slipway admin quota list 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10'],
      async run(cli, { of }) {
        await printList(cli, await cli.operator.collect('adminQuotaList', { project_id: of }), quotaColumns)
      },
    }),
    command<{ of: string; quotas: string[] }>({
      name: 'set',
      summary: 'set quotas of a project; others stay',
      arguments: [
        { syntax: '<of>', description: 'id of the project' },
        { syntax: '<quotas...>', description: 'NAME=MAX: a100_gpus=16' },
      ],
      examples: ['slipway admin quota set 0199c6f2-9a1e-7c4b-8f51-6a2f0c1d7e10 a100_gpus=16 vms=200'],
      async run(cli, { of, quotas }) {
        const items = quotas.map(parsePair).map(([name, max]) => ({ name: name as Quota['name'], max }))
        await printList(
          cli,
          (await cli.operator.adminQuotaSet({ project_id: of, items })).items,
          quotaColumns,
        )
      },
    }),
  ],
}
