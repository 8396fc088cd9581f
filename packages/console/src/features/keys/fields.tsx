import type { AccessKey, KeyKind } from '@slipway/sdk'
import { useState } from 'react'
import { shellQuote } from '../../lib/shell.ts'
import { SelectField, TextField } from '../../ui/field.tsx'

type KeyRole = AccessKey['role']

/** What a key with the role may do. In the form, each role includes the rights of the roles above it. */
const rights: Record<KeyRole, string> = {
  read: 'View all resources in this project, without changing anything.',
  write: 'Also create, change and delete VMs, disks, networks and firewall rules. This can cost money.',
  viewer: 'View all resources in all projects, without changing anything.',
  member: 'Also create, change and delete VMs, disks, networks and firewall rules. This can cost money.',
  admin: 'Also manage projects, access keys, webhooks and budgets.',
  owner: 'Also manage members, billing and the organization itself.',
}

const kindText: Record<KeyKind, string> = {
  bearer: 'Bearer key',
  signing: 'Signing key',
}

const expiryText: Record<string, string> = {
  '1': 'In 1 day',
  '30': 'In 30 days',
  '90': 'In 90 days',
  '365': 'In 1 year',
  '': 'Never',
}
const defaultDays = '90'
const dayMs = 86_400_000

/** The form values of a new key. The defaults grant the fewest rights. */
export function useKeyDraft<Role extends KeyRole>(roles: readonly [Role, ...Role[]]) {
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>(roles[0])
  const [days, setDays] = useState(defaultDays)
  const [from, setFrom] = useState('')
  const [kind, setKind] = useState<KeyKind>('bearer')
  return {
    ...{ roles, name, setName, role, setRole, days, setDays, from, setFrom, kind, setKind },
    problem: name.trim() ? undefined : 'Enter a name',
    request: () => ({
      name: name.trim(),
      role,
      kind,
      allowed_cidrs: from.split(/[\s,]+/).filter(Boolean),
      ...(days && { expires_at: new Date(Date.now() + Number(days) * dayMs).toISOString() }),
    }),
  }
}

type KeyDraft = Record<'name' | 'role' | 'days' | 'from' | 'kind', string>

/** Returns the options of the CLI command that creates the key. */
export const keyOptions = ({ name, role, days, from, kind }: KeyDraft): string =>
  [
    `${shellQuote(name.trim() || 'NAME')} --role ${role}`,
    ...(kind === 'bearer' ? [] : [`--kind ${kind}`]),
    ...(days ? [`--expires ${days}d`] : []),
    ...(from.trim()
      ? [
          `--allow ${from
            .split(/[\s,]+/)
            .filter(Boolean)
            .join(',')}`,
        ]
      : []),
  ].join(' ')

/** The fields of a new project key or organization key. */
export function KeyFields<Role extends KeyRole>({ draft }: { draft: ReturnType<typeof useKeyDraft<Role>> }) {
  const { roles, name, setName, role, setRole, days, setDays, from, setFrom, kind, setKind } = draft
  return (
    <>
      <TextField label="Name" value={name} onChange={setName} hint="What is this key for?" autoFocus />
      <fieldset className="flex flex-col gap-1">
        <legend className="mb-1 text-sm font-medium">Role</legend>
        <div className="card divide-y divide-line">
          {roles.map((each) => (
            <label
              key={each}
              className="flex cursor-pointer items-start gap-2 px-3 py-2 has-checked:bg-accent-soft"
            >
              <input
                type="radio"
                name="key-role"
                className="mt-1 accent-accent"
                checked={role === each}
                onChange={() => setRole(each)}
              />
              <span>
                {each}
                <span className="block text-sm text-ink-muted">{rights[each]}</span>
              </span>
            </label>
          ))}
        </div>
      </fieldset>
      <SelectField
        label="Expires"
        value={days}
        onChange={setDays}
        choices={Object.keys(expiryText)
          .sort((a, b) => Number(a || Number.POSITIVE_INFINITY) - Number(b || Number.POSITIVE_INFINITY))
          .map((value) => ({ value, label: expiryText[value]! }))}
        hint={days === '' ? 'A key that never expires works until it is revoked.' : undefined}
      />
      <TextField
        label="Allowed IPs"
        value={from}
        onChange={setFrom}
        hint="Addresses or CIDR blocks, separated by commas. Leave empty to allow any address."
      />
      <SelectField
        label="Kind"
        value={kind}
        onChange={(value) => setKind(value as KeyKind)}
        choices={Object.entries(kindText).map(([value, label]) => ({ value, label }))}
        hint={
          kind === 'signing'
            ? 'For clients that sign their requests to /v1 or /v1alpha5. This API works only if an operator has enabled it.'
            : 'For programs that send the key as a bearer token, such as the CLI, the SDK and Terraform.'
        }
      />
    </>
  )
}
