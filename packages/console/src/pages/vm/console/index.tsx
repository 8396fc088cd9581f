import { isApiError, type Vm, vmConsoleStates } from '@slipway/sdk'
import { useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useProjectId, useWhyNot } from '../../../api/me.ts'
import { read } from '../../../api/read.ts'
import { useQuery } from '../../../api/use-query.ts'
import { Button } from '../../../ui/button.tsx'
import { ErrorNote, ErrorState } from '../../../ui/error.tsx'
import { TextField } from '../../../ui/field.tsx'
import { Page, Skeleton } from '../../../ui/page.tsx'
import { StateBadge } from '../../../ui/state.tsx'
import { DeletedVmPage } from '../deleted.tsx'
import { VmTabs } from '../tabs.tsx'
import { type ConsoleState, useTerminal } from './use-terminal.ts'

export function VmConsolePage() {
  const projectId = useProjectId()
  const { vmId = '' } = useParams({ strict: false })
  const vm = useQuery(read('vmGet', { params: { project_id: projectId, vm_id: vmId } }))
  const isDeleted = isApiError(vm.error) && vm.error.code === 'not_found'
  if (isDeleted) return <DeletedVmPage projectId={projectId} vmId={vmId} last={vm.data} />
  if (!vm.data)
    return (
      <Page title="VM" trail={[['VMs', `/projects/${projectId}/vms`]]}>
        {vm.error ? <ErrorState error={vm.error} onRetry={() => vm.refetch()} /> : <Skeleton rows={10} />}
      </Page>
    )
  return (
    <Page
      title={vm.data.name}
      trail={[['VMs', `/projects/${projectId}/vms`]]}
      aside={<StateBadge state={vm.data.state} since={vm.data.updated_at} />}
    >
      <VmTabs vm={vm.data} />
      <Console key={vm.data.id} vm={vm.data} />
    </Page>
  )
}

function Console({ vm }: { vm: Vm }) {
  const whyNotWrite = useWhyNot('member')
  const whyNot = vmConsoleStates.includes(vm.state) ? undefined : 'The VM is off'
  const { frame, state, connect, copy, find } = useTerminal(vm, { mayWrite: !whyNotWrite, isOn: !whyNot })
  const [wanted, setWanted] = useState('')
  return (
    <section className="flex flex-col gap-3" aria-label="Serial console">
      <div className="flex flex-wrap items-end gap-2">
        <p role="status" className="mr-auto text-ink-muted">
          {textOf(state)}
        </p>
        <form
          className="flex items-end gap-2"
          onSubmit={(event) => {
            event.preventDefault()
            find(wanted)
          }}
        >
          <TextField label="Find" value={wanted} onChange={setWanted} />
          <Button type="submit">Find next</Button>
        </form>
        <Button onClick={copy}>Copy selection</Button>
        {state.kind !== 'connecting' && state.kind !== 'open' && (
          <Button kind="primary" reason={whyNot} onClick={() => connect(whyNotWrite ? 'read' : 'write')}>
            Connect
          </Button>
        )}
        {state.kind === 'open' && state.mode === 'read' && (
          <Button reason={whyNotWrite} onClick={() => connect('write', true)}>
            Take over
          </Button>
        )}
      </div>
      {state.kind === 'failed' && <ErrorNote error={state.error} />}
      {/* The terminal draws its own text, and handles selection and search. */}
      <div className="card overflow-hidden p-2">
        <div ref={frame} className="h-120" />
      </div>
    </section>
  )
}

function textOf(state: ConsoleState): string {
  switch (state.kind) {
    case 'connecting':
      return 'Connecting'
    case 'open':
      return state.mode === 'write' ? 'Connected. Your input is sent to the VM.' : `Read-only. ${state.note}`
    case 'closed':
      return state.reason
    case 'failed':
      return 'Not connected'
    case 'off':
      return 'The VM is off, so it has no console.'
  }
}
