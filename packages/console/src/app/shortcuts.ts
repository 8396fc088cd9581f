import { useNavigate } from '@tanstack/react-router'
import { useLayoutEffect, useRef } from 'react'
import { destinations } from '../lib/destinations.ts'

const chordMs = 1200

export function useShortcuts(projectId: string, on: { search: () => void; help: () => void }): void {
  const navigate = useNavigate()
  // Until this time, a second key completes a chord. Events contain their time, so slow renders do not break a chord.
  const chordUntil = useRef(0)
  // A layout effect, so that shortcuts work as soon as the page is visible.
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return
      if (document.querySelector('[data-modal], [role="menu"]')) return
      const isChord = event.timeStamp < chordUntil.current
      chordUntil.current = 0
      const act = (action: () => void) => {
        event.preventDefault()
        action()
      }
      if (isChord) {
        const target = destinations[event.key]
        if (target && projectId) act(() => void navigate({ to: `/projects/${projectId}${target.path}` }))
        else if (event.key === 'f') act(() => void navigate({ to: '/fleet' }))
      } else if (event.key === 'g') chordUntil.current = event.timeStamp + chordMs
      else if (event.key === '/') act(on.search)
      else if (event.key === '?') act(on.help)
      else if (event.key === 'c' && projectId)
        act(() => void navigate({ to: `/projects/${projectId}/vms/new` }))
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  }, [projectId, navigate, on.search, on.help])
}

function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null
  if (!element) return false
  const isTextInput = element.tagName === 'INPUT' && (element as HTMLInputElement).type !== 'checkbox'
  return isTextInput || ['TEXTAREA', 'SELECT'].includes(element.tagName) || element.isContentEditable
}
