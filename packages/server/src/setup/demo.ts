import { randomBytes } from 'node:crypto'
import { families, familyOfModel, gpuQuota, type OrganizationQuotaName } from '@slipway/contract'
import { createAccessKey, createSetupCode } from '../accounts/credentials.ts'
import { createProject } from '../accounts/projects.ts'
import type { Config, LocationConfig } from '../config/index.ts'
import { uuid } from '../domain/ids.ts'
import { hashPassword } from '../domain/password.ts'
import type { Database, Tx } from '../postgres/database.ts'
import { holdLock } from '../postgres/locks.ts'
import type { Services } from '../services.ts'
import { fillOrganizationQuotas, setOrganizationQuotas } from '../store/compute/organization-quotas.ts'
import { system } from '../store/events/events.ts'
import { isServed } from '../store/fleet/servers.ts'
import { operatorScope } from '../store/identity/access-keys.ts'
import {
  activateDemoPayment,
  type DemoRow,
  findDemo,
  isEmptyStore,
  isSetupNeeded,
  revokeKeysNamed,
} from '../store/identity/demo.ts'
import { insertMember } from '../store/identity/members.ts'
import { insertOrganization } from '../store/identity/organizations.ts'
import { revokeTokenFamiliesOfUser } from '../store/identity/tokens.ts'
import { findUserByEmail, insertUser, setUserPassword } from '../store/identity/users.ts'
import { type Credentials, readCredentials, writeCredentials } from './credentials-file.ts'

const email = 'demo@slipway.local'
const operatorEmail = 'operator@slipway.local'
const projectName = 'default'
const keyName = 'demo'
const operatorKeyName = 'demo-operator'

/**
 * Creates the demo organization in an empty database, and writes its credentials file. If the demo exists,
 * writes the file again with the URL of this server, unless the server at the URL in the file is still running, or
 * this process does not have the role `all`. The secrets are stored only in the file; if the file is missing, they
 * are replaced with new ones. Returns null if the database was set up without the demo.
 */
export async function seedDemo(
  { database, config }: Pick<Services, 'database' | 'config'>,
  url: { api: string; console: string },
): Promise<Credentials | null> {
  const { dataDir, role } = config.server
  return database.transaction(async (tx) => {
    // The lock is held until the file is written, so that the next process finds both the demo and its secrets.
    await holdLock(tx, 'demo')
    const known = await findDemo(tx, email, projectName)
    if (!known && !(await isEmptyStore(tx))) return null
    const kept = known && (await readCredentials(dataDir))
    const isKept = kept && kept.project_id === known.project_id
    const secrets = isKept ? kept : await makeSecrets(tx, config, known)
    const hasOperator = isKept && kept.operator_password !== ''
    const operator = hasOperator ? kept : await makeOperator(tx)
    const current = { ...secrets, ...operator, api_url: url.api, console_url: url.console }
    const isServedElsewhere = isKept && kept.api_url !== url.api && (await isServed(tx, kept.api_url))
    const { api_url, console_url } = isServedElsewhere ? kept : current
    if (!hasOperator || (role === 'all' && !isServedElsewhere))
      await writeCredentials(dataDir, { ...current, api_url, console_url })
    return current
  })
}

type Operator = Pick<Credentials, 'operator_email' | 'operator_password'>
type Secrets = Omit<Credentials, 'api_url' | 'console_url' | keyof Operator>

const newPassword = () => randomBytes(18).toString('base64url')

/** Finds the demo organization, its project and its owner. */
export const demoOf = (tx: Tx): Promise<DemoRow | undefined> => findDemo(tx, email, projectName)

/**
 * Creates the demo operator, or gives the existing one a new password. If the user with this e-mail address is not an operator,
 * nothing is changed.
 */
async function makeOperator(tx: Tx): Promise<Operator> {
  const password = newPassword()
  const passwordHash = await hashPassword(password)
  const known = await findUserByEmail(tx, operatorEmail)
  if (known && !known.is_operator) return { operator_email: '', operator_password: '' }
  if (known) {
    await setUserPassword(tx, known.id, passwordHash)
    await revokeTokenFamiliesOfUser(tx, known.id)
  } else {
    await insertUser(tx, { id: uuid(), email: operatorEmail, passwordHash, isOperator: true })
  }
  return { operator_email: operatorEmail, operator_password: password }
}

async function makeSecrets(tx: Tx, config: Config, known: DemoRow | undefined): Promise<Secrets> {
  const password = newPassword()
  const passwordHash = await hashPassword(password)
  if (known) await endOldSecrets(tx, known, passwordHash)
  const { organization_id, project_id } = known ?? (await makeDemo(tx, config, passwordHash))
  return { organization_id, project_id, email, password, ...(await makeKeys(tx, project_id)) }
}

async function makeDemo(tx: Tx, config: Config, passwordHash: string): Promise<DemoRow> {
  const organization = await insertOrganization(tx, uuid(), 'Demo')
  await activateDemoPayment(tx, organization.id)
  const user = await insertUser(tx, { id: uuid(), email, passwordHash, isOperator: false })
  if (!user) throw new Error(`${email} exists in a database without organizations`)
  await insertMember(tx, organization.id, user.id, 'owner')
  await setOrganizationQuotas(tx, organization.id, fleetQuotas(config))
  const project = await createProject(tx, system, { organizationId: organization.id, name: projectName })
  return { organization_id: organization.id, project_id: project.id, user_id: user.id }
}

async function makeKeys(tx: Tx, projectId: string): Promise<{ access_key: string; operator_key: string }> {
  const common = { role: 'write', createdBy: null } as const
  const scope = { projectId, organizationId: null }
  const key = await createAccessKey(tx, { ...common, scope, name: keyName })
  const operatorKey = await createAccessKey(tx, { ...common, scope: operatorScope, name: operatorKeyName })
  return { access_key: key!.secret, operator_key: operatorKey!.secret }
}

async function endOldSecrets(tx: Tx, demo: DemoRow, passwordHash: string): Promise<void> {
  await revokeKeysNamed(tx, keyName, demo.project_id)
  await revokeKeysNamed(tx, operatorKeyName, null)
  await setUserPassword(tx, demo.user_id, passwordHash)
  await revokeTokenFamiliesOfUser(tx, demo.user_id)
}

/** Sets missing quotas to the configured ones; the demo organization gets quotas for the whole fleet. */
export async function fillQuotas(tx: Tx, config: Pick<Config, 'quotas' | 'locations'>): Promise<void> {
  const demo = await findDemo(tx, email, projectName)
  if (demo) await fillOrganizationQuotas(tx, fleetQuotas(config), demo.organization_id)
  await fillOrganizationQuotas(tx, config.quotas)
}

/** Returns quotas that allow the whole fleet to be used, even by VMs with one GPU each. */
function fleetQuotas({
  quotas: defaults,
  locations,
}: Pick<Config, 'quotas' | 'locations'>): Record<OrganizationQuotaName, number> {
  const quotas = { ...defaults }
  const fleet = locations.flatMap(gpusOf)
  for (const family of Object.keys(families) as (keyof typeof families)[]) {
    const gpus = fleet.filter(({ model }) => familyOfModel(model) === family)
    const total = gpus.reduce((sum, { count }) => sum + count, 0)
    quotas[gpuQuota(family)] = Math.max(total, defaults[gpuQuota(family)])
  }
  const total = fleet.reduce((sum, { count }) => sum + count, 0)
  quotas.vms = Math.max(total, defaults.vms)
  return quotas
}

function gpusOf(location: LocationConfig): { model: string; count: number }[] {
  switch (location.engine) {
    case 'simulated':
      return location.simulated.hosts.map(({ model, count, gpus }) => ({ model, count: count * gpus }))
    case 'qemu':
      return location.qemu.gpus.flatMap((gpu) => ('model' in gpu ? [gpu] : []))
    case 'incus':
      return location.incus.gpus
  }
}

/** Returns the setup code of the first operator, to be shown once; null if there is an operator or a valid code. */
export function offerSetupCode(database: Database): Promise<string | null> {
  return database.transaction(async (tx) => {
    await holdLock(tx, 'demo')
    return (await isSetupNeeded(tx)) ? createSetupCode(tx) : null
  })
}
