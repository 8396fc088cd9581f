import { consoleProtocol, isApiError, type Vm } from '@slipway/sdk'
import { useEffect, useRef, useState } from 'react'
import { client } from '../../../api/client.ts'
import { useTheme } from '../../../lib/theme.ts'
import { createTerminal, type SerialTerminal } from './terminal.ts'

type Mode = 'read' | 'write'

export type ConsoleState =
  | { kind: 'off' | 'connecting' }
  | { kind: 'open'; mode: Mode; note: string }
  | { kind: 'closed'; reason: string }
  | { kind: 'failed'; error: Error }

interface TerminalOptions {
  mayWrite: boolean
  isOn: boolean
}

/** A terminal for a VM's serial console. It connects automatically, read-only if another session writes. */
export function useTerminal(vm: Vm, { mayWrite, isOn }: TerminalOptions) {
  const frame = useRef<HTMLDivElement>(null)
  const terminal = useRef<SerialTerminal | null>(null)
  const socket = useRef<WebSocket | null>(null)
  const [state, setState] = useState<ConsoleState>(isOn ? { kind: 'connecting' } : { kind: 'off' })
  const theme = useTheme()

  async function connect(mode: Mode, force = false, note = '') {
    socket.current?.close()
    setState({ kind: 'connecting' })
    try {
      const target = { project_id: vm.project_id, vm_id: vm.id }
      const { url } = await client.vmConsoleCreate(target, { mode, ...(force && { force }) })
      // The page may use a different host name than the public URL, and can connect only to its own origin.
      const here = new URL(new URL(url).pathname, location.href.replace(/^http/, 'ws'))
      const connection = new WebSocket(here, consoleProtocol)
      connection.binaryType = 'arraybuffer'
      socket.current = connection
      terminal.current?.reset()
      connection.onopen = () => {
        setState({ kind: 'open', mode, note })
        terminal.current?.focus()
      }
      connection.onmessage = ({ data }) => {
        if (data instanceof ArrayBuffer) terminal.current?.write(new Uint8Array(data))
      }
      connection.onclose = ({ reason }) => {
        if (socket.current === connection)
          setState({ kind: 'closed', reason: reason || 'The connection was lost.' })
      }
    } catch (error) {
      if (mode === 'write' && !force && isApiError(error) && error.code === 'conflict')
        return connect('read', false, error.message)
      setState({ kind: 'failed', error: error as Error })
    }
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: one terminal for the life of the page
  useEffect(() => {
    if (!frame.current) return
    const newTerminal = createTerminal(frame.current, (input) => {
      if (socket.current?.readyState === WebSocket.OPEN) socket.current.send(input)
    })
    terminal.current = newTerminal
    if (isOn) void connect(mayWrite ? 'write' : 'read')
    return () => {
      const open = socket.current
      socket.current = null
      open?.close()
      newTerminal.dispose()
    }
  }, [])

  // biome-ignore lint/correctness/useExhaustiveDependencies: the colors follow the theme
  useEffect(() => terminal.current?.applyThemeColors(), [theme])

  return {
    frame,
    state,
    connect,
    copy: () => terminal.current?.copy(),
    find: (text: string) => terminal.current?.find(text),
  }
}
