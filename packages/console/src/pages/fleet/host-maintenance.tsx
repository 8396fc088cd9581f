import type { Host } from '@slipway/sdk'
import { type ReactNode, useState } from 'react'
import { useAction } from '../../api/actions.ts'
import { client } from '../../api/client.ts'
import { useFleetNames } from '../../features/fleet/audit-events.tsx'
import { type Commands, operatorCommands, shellQuote } from '../../lib/shell.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog, submitProps } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Section } from '../../ui/page.tsx'
import { Timestamp } from '../../ui/time.tsx'

/** A host's announced maintenance, which its tenants see, and its note, which only operators see. */
export function HostMaintenance({ host }: { host: Host }) {
  const [open, setOpen] = useState<'maintenance' | 'note' | ''>('')
  const cancel = useAction({
    run: () => client.adminHostMaintenanceDelete({ host_id: host.id }),
    done: () => `Cancelled maintenance of ${host.name}`,
    failed: () => `Could not cancel maintenance of ${host.name}`,
    invalidates: ['adminHostGet'],
  })
  return (
    <Section title="Maintenance and note">
      <div className="card divide-y divide-line">
        <Row
          text={
            host.maintenance_at ? (
              <>
                Maintenance at <Timestamp iso={host.maintenance_at} />
                {host.maintenance_note && `: ${host.maintenance_note}`}
              </>
            ) : (
              <span className="text-ink-muted">
                No maintenance is announced. When you announce it, tenants see an alert, and get an event 7
                days, 24 hours and 1 hour before the start.
              </span>
            )
          }
        >
          {host.maintenance_at && (
            <Button isBusy={cancel.isPending} onClick={() => cancel.mutate(undefined)}>
              Cancel maintenance
            </Button>
          )}
          <Button onClick={() => setOpen('maintenance')}>
            {host.maintenance_at ? 'Change' : 'Announce maintenance'}
          </Button>
        </Row>
        <Row
          text={
            host.note ? (
              <Note host={host} />
            ) : (
              <span className="text-ink-muted">No note. Only operators see notes.</span>
            )
          }
        >
          <Button onClick={() => setOpen('note')}>{host.note ? 'Edit note' : 'Add note'}</Button>
        </Row>
      </div>
      {open === 'maintenance' && <MaintenanceDialog host={host} onClose={() => setOpen('')} />}
      {open === 'note' && <NoteDialog host={host} onClose={() => setOpen('')} />}
    </Section>
  )
}

/** The note, with its author and time. */
function Note({ host: { note, note_at, note_by } }: { host: Host }) {
  const { actors } = useFleetNames()
  return (
    <>
      {note}
      {note_at && (
        <span className="block text-sm text-ink-muted">
          <Timestamp iso={note_at} /> by{' '}
          {actors.get(note_by) ?? note_by.replace(/^operator_key:.*/, 'an operator key')}
        </span>
      )}
    </>
  )
}

function Row({ text, children }: { text: ReactNode; children: ReactNode }) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2 px-4 py-2.5">
      <p className="min-w-0 flex-[1_1_240px] break-words">{text}</p>
      <span className="flex gap-2">{children}</span>
    </div>
  )
}

interface DialogProps {
  host: Host
  onClose: () => void
}

/** The form dialog for maintenance and notes. */
function HostDialog({
  title,
  host,
  onClose,
  submit,
  ...rest
}: DialogProps & {
  title: string
  action: string
  submit: ReturnType<typeof submitProps>
  reason?: string | undefined
  commands: Commands
  children: ReactNode
}) {
  return <FormDialog isOpen title={`${title} for ${host.name}`} onClose={onClose} {...submit} {...rest} />
}

/** Returns a time in the format of a `datetime-local` input. */
function localInput(iso: string): string {
  const date = new Date(iso)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

function MaintenanceDialog({ host, onClose }: DialogProps) {
  const [at, setAt] = useState(host.maintenance_at ? localInput(host.maintenance_at) : '')
  const [note, setNote] = useState(host.maintenance_note)
  const request = { at: at === '' ? '' : new Date(at).toISOString(), note }
  const announce = useAction({
    run: () => client.adminHostMaintenanceSet({ host_id: host.id }, request),
    done: () => `Announced maintenance for ${host.name}`,
    invalidates: ['adminHostGet'],
    showsErrors: true,
  })
  const isPast = at !== '' && Date.parse(at) <= Date.now()
  return (
    <HostDialog
      title="Maintenance"
      {...{ host, onClose }}
      submit={submitProps(announce, undefined, onClose)}
      action="Announce maintenance"
      commands={operatorCommands({
        cli: `slipway admin host maintenance ${host.id} --at ${request.at || 'TIME'}${note && ` --note ${shellQuote(note)}`}`,
        path: `/hosts/${host.id}/maintenance`,
        body: request,
      })}
      reason={at === '' ? 'Choose a time' : isPast ? 'Choose a time in the future' : undefined}
    >
      <TextField
        label="Start (your local time)"
        type="datetime-local"
        value={at}
        onChange={setAt}
        hint="Tenants with VMs on this host see an alert immediately, and get an event 7 days, 24 hours and 1 hour before the start."
        problem={isPast ? 'Choose a time in the future.' : ''}
      />
      <TextField
        label="Note for tenants (optional)"
        value={note}
        onChange={setNote}
        maxLength={500}
        hint="Shown to tenants with VMs on this host. Example: Replacing power supplies."
      />
    </HostDialog>
  )
}

function NoteDialog({ host, onClose }: DialogProps) {
  const [note, setNote] = useState(host.note)
  const save = useAction({
    run: () => client.adminHostUpdate({ host_id: host.id }, { note }),
    done: () => `Saved the note for ${host.name}`,
    invalidates: ['adminHostGet'],
    showsErrors: true,
  })
  return (
    <HostDialog
      title="Note"
      {...{ host, onClose }}
      submit={submitProps(save, undefined, onClose)}
      action="Save note"
      commands={operatorCommands({
        cli: `slipway admin host note ${host.id} ${shellQuote(note)}`,
        method: 'PATCH',
        path: `/hosts/${host.id}`,
        body: { note },
      })}
      reason={note === host.note ? 'No changes yet' : undefined}
    >
      <TextField
        label="Note"
        value={note}
        onChange={setNote}
        maxLength={500}
        hint="Only operators can see it."
        autoFocus
      />
    </HostDialog>
  )
}
