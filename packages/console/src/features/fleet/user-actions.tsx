import type { ListItem, RouteResponse } from '@slipway/sdk'
import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useMe } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { curlCommand } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, submitProps } from '../../ui/dialog.tsx'

type AdminUserDetails = RouteResponse<'adminUserGet'>
type Question = 'suspend' | 'totp' | 'operator'

interface UserActionsProps {
  user: AdminUserDetails
  onResetLink: (url: string) => void
}

/** An operator's actions on an account. */
export function UserActions({ user, onResetLink }: UserActionsProps) {
  const { caller } = useMe()
  const [asked, setAsked] = useState<Question | null>(null)
  const reset = useAction({
    run: () => client.adminUserReset({ user_id: user.id }),
    done: () => '',
    failed: () => `Could not create a reset link for ${user.email}`,
    invalidates: ['adminEventList'],
  })
  const restore = useAction({
    run: () => client.adminUserUpdate({ user_id: user.id }, { suspended: false }),
    done: () => `Restored ${user.email}`,
    failed: () => `Could not restore ${user.email}`,
    invalidates: ['adminUserGet', 'adminUserList', 'adminEventList'],
  })
  const isSelf = user.id === caller.id
  const users = useQuery({ ...readAll('adminUserList', {}), enabled: user.is_operator })
  const isLastOperator = users.data && !users.data.some((other) => other.id !== user.id && canOperate(other))
  return (
    <>
      <Button
        reason={user.has_password ? undefined : 'This account uses single sign-on only.'}
        isBusy={reset.isPending}
        onClick={() => reset.mutate(undefined, { onSuccess: ({ reset_url }) => onResetLink(reset_url) })}
      >
        Create reset link
      </Button>
      {user.has_totp && <Button onClick={() => setAsked('totp')}>Remove two-factor</Button>}
      {user.is_operator && (
        <Button
          reason={
            isLastOperator ? 'This is the last operator. Make another user an operator first.' : undefined
          }
          onClick={() => setAsked('operator')}
        >
          Remove operator access
        </Button>
      )}
      {user.suspended ? (
        <Button isBusy={restore.isPending} onClick={() => restore.mutate()}>
          Restore
        </Button>
      ) : (
        <Button
          reason={isSelf ? 'You cannot suspend yourself.' : undefined}
          onClick={() => setAsked('suspend')}
        >
          Suspend
        </Button>
      )}
      {asked && <UserQuestion user={user} what={asked} onClose={() => setAsked(null)} />}
    </>
  )
}

/** The server counts neither suspended operators nor those who have not accepted their invitation. */
const canOperate = ({ is_operator, suspended, state }: ListItem<'adminUserList'>) =>
  is_operator && !suspended && state !== 'invited'

interface Change {
  title: string
  action: string
  /** Explains the effect. An operator can also change their own account. */
  text: (user: AdminUserDetails, isSelf: boolean) => string
  done: string
  cli: string
  curl: [method: string, path: string, body?: object]
  run: (user_id: string) => Promise<unknown>
}

export const suspendText =
  'The user will be signed out everywhere immediately. Keys that the user created will stop working. VMs and memberships will be kept, and Restore reverses the suspension.'

const changes: Record<Question, Change> = {
  suspend: {
    title: 'Suspend user',
    action: 'Suspend user',
    text: () => suspendText,
    done: 'Suspended',
    cli: 'suspend',
    curl: ['PATCH', '', { suspended: true }],
    run: (user_id) => client.adminUserUpdate({ user_id }, { suspended: true }),
  },
  totp: {
    title: 'Remove two-factor authentication for',
    action: 'Remove two-factor',
    text: () =>
      'All sessions of the user will end. The user can then sign in with only the password. First make sure that the user asked for this.',
    done: 'Removed two-factor authentication for',
    cli: 'remove-totp',
    curl: ['DELETE', '/totp'],
    run: (user_id) => client.adminUserTotpDelete({ user_id }),
  },
  operator: {
    title: 'Remove operator access from',
    action: 'Remove operator access',
    text: ({ memberships }, isSelf) =>
      [
        `${isSelf ? 'You' : 'The user'} will lose access to all pages under Fleet.`,
        `The operator keys that ${isSelf ? 'you' : 'the user'} created will be revoked.`,
        ...(memberships.length > 0 ? ['Memberships will be kept.'] : []),
      ].join(' '),
    done: 'Removed operator access from',
    cli: 'unmark',
    curl: ['PATCH', '', { is_operator: false }],
    run: (user_id) => client.adminUserUpdate({ user_id }, { is_operator: false }),
  },
}

function UserQuestion({
  user,
  what,
  onClose,
}: {
  user: AdminUserDetails
  what: Question
  onClose: () => void
}) {
  const { caller } = useMe()
  const { title, action, text, done, cli, curl, run } = changes[what]
  const act = useAction({
    run: () => run(user.id),
    done: () => `${done} ${user.email}`,
    invalidates: ['adminUserGet', 'adminUserList', 'adminEventList'],
    showsErrors: true,
  })
  const [method, path, body] = curl
  return (
    <Confirm
      isOpen
      onClose={onClose}
      title={`${title} ${user.email}`}
      action={action}
      {...submitProps(act, undefined, onClose)}
      commands={{
        cli: `slipway admin user ${cli} ${user.email || user.id}`,
        curl: curlCommand(method, `/v0.1/admin/users/${user.id}${path}`, body),
      }}
    >
      <p>{text(user, user.id === caller.id)}</p>
    </Confirm>
  )
}
