import type { Vm } from '@slipway/sdk'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { client } from '../../api/client.ts'
import { plural } from '../../lib/format.ts'
import { saveText } from '../../lib/save-text.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorNote } from '../../ui/error.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Section } from '../../ui/page.tsx'

const pollMs = 1_500
const maxChars = 400_000

/** Shows the serial log and follows new output. Scrolling up pauses this; scrolling to the end resumes it. */
export function SerialLog({ vm }: { vm: Vm }) {
  const { text, error } = useSerialLog(vm.project_id, vm.id)
  const [isFollowing, setFollowing] = useState(true)
  const [wanted, setWanted] = useState('')
  const lines = useMemo(
    () =>
      wanted ? text.split('\n').filter((line) => line.toLowerCase().includes(wanted.toLowerCase())) : [],
    [text, wanted],
  )
  const frame = useRef<HTMLPreElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: new text scrolls the log to its end
  useLayoutEffect(() => {
    const element = frame.current
    if (!isFollowing || !element) return
    const scrollToEnd = () => {
      element.scrollTop = element.scrollHeight
    }
    scrollToEnd()
    // Lines wrap differently after a resize.
    const observer = new ResizeObserver(scrollToEnd)
    observer.observe(element)
    return () => observer.disconnect()
  }, [text, isFollowing])
  return (
    <Section
      title="Serial log"
      actions={
        <>
          <input
            type="search"
            aria-label="Search the log"
            placeholder="Search the log"
            value={wanted}
            onChange={(event) => setWanted(event.target.value)}
            className="h-7 w-40 rounded-md border border-line-strong bg-surface px-2 text-sm"
          />
          {wanted && <span className="figures text-sm text-ink-muted">{plural(lines.length, 'line')}</span>}
          <Button
            size="small"
            kind="quiet"
            icon={<Icon name="download" size={14} />}
            reason={text ? undefined : 'The serial console is empty.'}
            onClick={() => saveText(`${vm.name}-serial.log`, text)}
          >
            Download
          </Button>
          <Button
            size="small"
            kind="quiet"
            onClick={() => setFollowing(!isFollowing)}
            aria-pressed={isFollowing}
            className="aria-pressed:border-line-strong aria-pressed:bg-sunken aria-pressed:text-ink"
          >
            Follow
          </Button>
        </>
      }
    >
      {error && !text ? (
        <ErrorNote error={error} isRead />
      ) : (
        // The height is a multiple of the line height, so that no line is cut off.
        <div className="card overflow-hidden py-3">
          <pre
            ref={frame}
            // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
            tabIndex={0}
            role="log"
            aria-label="Serial log"
            aria-live="off"
            onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) =>
              setFollowing(scrollTop + clientHeight >= scrollHeight - 8)
            }
            className="mono h-65 overflow-auto px-3 break-all whitespace-pre-wrap"
          >
            {(wanted ? lines.join('\n') : text) || (
              <span className="text-ink-muted">
                {text ? 'No line contains this text.' : 'The serial console is empty.'}
              </span>
            )}
          </pre>
        </div>
      )}
    </Section>
  )
}

function useSerialLog(projectId: string, vmId: string): { text: string; error: Error | null } {
  const [text, setText] = useState('')
  const [error, setError] = useState<Error | null>(null)
  useEffect(() => {
    const stop = new AbortController()
    let offset: number | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    setText('')
    const poll = async () => {
      try {
        if (!document.hidden || offset === undefined) {
          const target = { project_id: projectId, vm_id: vmId, ...(offset !== undefined && { offset }) }
          const { content, next_offset } = await client.vmSerialLog(target, { signal: stop.signal })
          offset = next_offset
          if (content) setText((before) => (before + content).slice(-maxChars))
          setError(null)
        }
      } catch (cause) {
        if (stop.signal.aborted) return
        setError(cause as Error)
      }
      timer = setTimeout(poll, pollMs)
    }
    void poll()
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, [projectId, vmId])
  return { text, error }
}
