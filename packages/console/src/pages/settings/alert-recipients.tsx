import { useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useRole, useWhyNot } from '../../api/me.ts'
import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { curlCommand, shellQuote } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog, submitProps } from '../../ui/dialog.tsx'
import { TextArea } from '../../ui/field.tsx'
import { Loaded } from '../../ui/loaded.tsx'
import { Section } from '../../ui/page.tsx'

const maxRecipients = 10

/**
 * Addresses that get alerts by e-mail in addition to owners and admins. Only admins and owners can read them.
 */
export function AlertRecipients({ organizationId }: { organizationId: string }) {
  const role = useRole(organizationId)
  const mayRead = role === 'admin' || role === 'owner'
  const params = { organization_id: organizationId }
  const recipients = useQuery({ ...read('alertRecipientsGet', { params }), enabled: mayRead })
  const whyNot = useWhyNot('admin')
  const [isChanging, setChanging] = useState(false)
  if (!mayRead) return null
  return (
    <Section
      title="Alerts by e-mail"
      about="Owners and admins get e-mails about budgets, payments and quota requests."
    >
      <Loaded query={recipients} rows={1}>
        {({ emails }) => (
          <>
            <div className="card flex flex-wrap items-center justify-between gap-4 px-4 py-3">
              <span className={emails.length === 0 ? 'text-ink-muted' : 'min-w-0 wrap-anywhere'}>
                {emails.length === 0 ? 'No additional recipients.' : `Also sent to ${emails.join(', ')}`}
              </span>
              <Button reason={whyNot} onClick={() => setChanging(true)}>
                Change recipients
              </Button>
            </div>
            {isChanging && (
              <RecipientsDialog
                organizationId={organizationId}
                emails={emails}
                onClose={() => setChanging(false)}
              />
            )}
          </>
        )}
      </Loaded>
    </Section>
  )
}

interface RecipientsDialogProps {
  organizationId: string
  emails: string[]
  onClose: () => void
}

function RecipientsDialog({ organizationId, emails, onClose }: RecipientsDialogProps) {
  const [text, setText] = useState(emails.join('\n'))
  const wanted = text.split(/[\s,;]+/).filter(Boolean)
  const wrong = wanted.find((email) => !/^\S+@\S+$/.test(email))
  const save = useAction({
    run: () => client.alertRecipientsSet({ organization_id: organizationId }, { emails: wanted }),
    done: () => 'Changed alert recipients',
    undo: () => () => client.alertRecipientsSet({ organization_id: organizationId }, { emails }),
    invalidates: ['alertRecipientsGet'],
    showsErrors: true,
  })
  return (
    <FormDialog
      isOpen
      onClose={onClose}
      title="Alert recipients"
      action="Save recipients"
      {...submitProps(save, undefined, onClose)}
      reason={
        wrong
          ? `${wrong} is not an e-mail address`
          : wanted.length > maxRecipients
            ? `Enter at most ${maxRecipients} addresses`
            : wanted.join() === emails.join()
              ? 'No changes yet'
              : undefined
      }
      commands={{
        cli: `slipway org alert-recipients ${wanted.length === 0 ? '--none' : wanted.map(shellQuote).join(' ')}`,
        curl: curlCommand('PUT', `/v0.1/organizations/${organizationId}/alert-recipients`, {
          emails: wanted,
        }),
      }}
    >
      <TextArea
        label="Additional e-mail addresses"
        hint="One per line, for example a mailing list. Leave empty to send alerts to owners and admins only."
        value={text}
        onChange={setText}
        rows={4}
      />
    </FormDialog>
  )
}
