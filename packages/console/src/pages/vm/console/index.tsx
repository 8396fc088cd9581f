import { type Vm, vmConsoleStates } from '@slipway/sdk'
import { useState } from 'react'
import { useWhyNot } from '../../../api/me.ts'
import { Button } from '../../../ui/button.tsx'
import { ErrorNote } from '../../../ui/error.tsx'
import { VmTabPage } from '../page.tsx'
import { type ConsoleState, useTerminal } from './use-terminal.ts'

export const VmConsolePage = () => <VmTabPage>{(vm) => <Console key={vm.id} vm={vm} />}</VmTabPage>

function Console({ vm }: { vm: Vm }) {
  const whyNotWrite = useWhyNot('member')
  const whyNot = vmConsoleStates.includes(vm.state) ? undefined : 'The VM is off'
  const { frame, state, connect, copy, find } = useTerminal(vm, { mayWrite: !whyNotWrite, isOn: !whyNot })
  const [wanted, setWanted] = useState('')
  return (
    <section className="flex flex-col gap-3" aria-label="Serial console">
      <div className="flex flex-wrap items-center gap-2">
        <p role="status" className="mr-auto text-ink-muted">
          {textOf(state)}
        </p>
        <div className="flex flex-wrap items-center gap-2 max-lg:w-full">
          <form
            className="flex min-w-48 flex-1 items-center gap-2"
            onSubmit={(event) => {
              event.preventDefault()
              find(wanted)
            }}
          >
            <input
              type="search"
              aria-label="Find"
              placeholder="Find"
              value={wanted}
              onChange={(event) => setWanted(event.target.value)}
              className="h-8 min-w-0 flex-1 rounded-md border border-line-strong bg-surface px-2"
            />
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
      </div>
      {state.kind === 'failed' && <ErrorNote error={state.error} />}
      {/* The terminal draws its own text, and handles selection and search. */}
      <div className="card relative overflow-hidden p-2">
        <div ref={frame} className="h-120" />
        {state.kind === 'connecting' && (
          <p
            aria-hidden="true"
            className="absolute inset-0 z-20 flex items-center justify-center bg-surface text-ink-muted"
          >
            Connecting to the serial console
          </p>
        )}
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
