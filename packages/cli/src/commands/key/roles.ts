import type { Role } from '@slipway/sdk'

type KeyRole = 'read' | 'write'

/** The service calls the roles of a project's keys otherwise; people see and say one vocabulary. */
const roleOfKey: Record<KeyRole, Role> = { read: 'viewer', write: 'member' }

export const keyRoles = Object.values(roleOfKey)

/** `write` is `member`; what is a role already stays one. */
export const roleWord = (role: string): string => (roleOfKey as Record<string, string>)[role] ?? role

export const keyRoleOf = (role: string): KeyRole =>
  roleOfKey.read === role || role === 'read' ? 'read' : 'write'
