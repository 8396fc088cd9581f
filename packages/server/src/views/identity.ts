import type {
  AccessKey,
  AdminUserDetails,
  Identity,
  Member,
  Organization,
  Project,
  Session,
  SshKey,
} from '@slipway/contract'
import { usdNumber } from '../domain/charges.ts'
import { usdOfMs } from '../domain/money.ts'
import { time } from '../postgres/time.ts'
import type { SshKeyRow } from '../store/compute/ssh-keys.ts'
import type { AccessKeyRow } from '../store/identity/access-keys.ts'
import type { IdentityRow } from '../store/identity/identities.ts'
import type { MemberRow } from '../store/identity/members.ts'
import type { AccountRow, OrganizationRow } from '../store/identity/organizations.ts'
import type { AdminProjectRow, ProjectRow } from '../store/identity/projects.ts'
import type { SessionRow } from '../store/identity/sessions.ts'
import type { PersonRow, UserAccountRow } from '../store/identity/users.ts'

export const accessKeyView = (row: AccessKeyRow): AccessKey => ({
  id: row.id,
  name: row.name,
  kind: row.signing_sealed ? 'signing' : 'bearer',
  role: row.role,
  prefix: row.prefix,
  created_by: row.created_by ?? '',
  parent_id: row.parent_id ?? '',
  created_at: time(row.created_at),
  expires_at: time(row.expires_at),
  last_used_at: time(row.last_used_at),
  allowed_cidrs: row.allowed_cidrs,
})

export const sshKeyView = (row: SshKeyRow): SshKey => ({
  id: row.id,
  name: row.name,
  public_key: row.public_key,
  type: row.type,
  fingerprint: row.fingerprint,
  created_at: time(row.created_at),
})

export const memberView = (row: MemberRow): Member => ({
  user_id: row.user_id,
  email: row.email,
  role: row.role,
  state: row.is_invited ? 'invited' : 'active',
  created_at: time(row.created_at),
})

/** Shows an account, or an invitation to create one. */
export const userView = (row: PersonRow) => ({
  id: row.id,
  email: row.email,
  is_operator: row.is_operator,
  suspended: row.suspended_at !== null,
  state: row.is_invited ? ('invited' as const) : ('active' as const),
  created_at: time(row.created_at),
  last_sign_in_at: time(row.last_sign_in_at ?? null),
})

export const userDetailsView = (row: UserAccountRow): AdminUserDetails => ({
  ...userView(row),
  has_totp: row.totp_confirmed_at !== null,
  has_password: row.password_hash !== null,
  sessions: row.sessions,
  memberships: row.memberships,
})

export const sessionView = (row: SessionRow, currentId: string): Session => ({
  id: row.id,
  is_current: row.id === currentId,
  client_address: row.client_address,
  user_agent: row.user_agent,
  has_second_factor: row.has_second_factor,
  created_at: time(row.created_at),
  last_used_at: time(row.last_used_at),
  expires_at: time(row.expires_at),
})

/** `providers` are the configured single sign-on providers. */
export const identityView = (row: IdentityRow, providers: { name: string; issuer: string }[]): Identity => ({
  provider: providers.find(({ issuer }) => issuer === row.issuer)?.name ?? '',
  issuer: row.issuer,
  subject: row.subject,
  linked_at: time(row.created_at),
})

export const organizationView = (row: OrganizationRow): Organization => ({
  id: row.id,
  name: row.name,
  payment_customer_id: row.payment_customer_id,
  require_totp: row.require_totp,
})

export const adminOrganizationView = (row: AccountRow) => ({
  ...organizationView(row),
  suspended: row.suspended_at !== null,
  payment_state: row.payment_state,
  month_to_date_usd: usdNumber(usdOfMs(row.spent_usd_ms)),
  projects: row.projects,
  vms: row.vms,
  created_at: time(row.created_at),
})

export const projectView = (row: ProjectRow): Project => ({
  id: row.id,
  name: row.name,
  version: row.version,
  organization_id: row.organization_id,
  labels: row.labels,
})

export const adminProjectView = (row: AdminProjectRow) => ({
  ...projectView(row),
  organization_name: row.organization_name,
  vms: row.vms,
  running_vms: row.running_vms,
  month_to_date_usd: Number(row.month_to_date_usd),
})
