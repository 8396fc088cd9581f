import { Dialog } from '@base-ui/react/dialog'
import { useNavigate } from '@tanstack/react-router'
import { Search } from 'lucide-react'
import { type KeyboardEvent, useId, useMemo, useState } from 'react'
import { useMe, useProjectId } from '../api/me.ts'
import { readAll } from '../api/read.ts'
import { useQuery } from '../api/use-query.ts'
import { destinations } from '../lib/destinations.ts'
import { sizeWords } from '../lib/format.ts'
import { stateWord } from '../lib/state-words.ts'

interface Hit {
  key: string
  name: string
  kind: string
  note: string
  to: string
}

const mostHits = 12

export function Palette({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Dialog.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-40 bg-backdrop" />
        <Dialog.Popup
          data-modal
          className="fixed top-[12vh] left-1/2 z-50 w-[calc(100%-32px)] max-w-xl -translate-x-1/2 overflow-hidden rounded-md border border-line-strong bg-surface shadow-float"
        >
          <Dialog.Title className="sr-only">Search</Dialog.Title>
          <Finder onClose={onClose} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function Finder({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate()
  const listId = useId()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const all = useCandidates()
  const hits = useMemo(() => {
    const wanted = text.trim().toLowerCase()
    return all
      .filter(({ name, note, key }) => `${name} ${note} ${key}`.toLowerCase().includes(wanted))
      .slice(0, mostHits)
  }, [all, text])
  const open = (hit: Hit | undefined) => {
    if (!hit) return
    onClose()
    void navigate({ to: hit.to })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setAt((before) => Math.min(before + 1, hits.length - 1))
    else if (event.key === 'ArrowUp') setAt((before) => Math.max(before - 1, 0))
    else if (event.key === 'Enter') open(hits[at])
    else return
    event.preventDefault()
  }
  return (
    <>
      <div className="flex items-center gap-2 border-b border-line px-3">
        <Search size={16} className="text-ink-muted" />
        <input
          // biome-ignore lint/a11y/noAutofocus: opened to type into
          autoFocus
          role="combobox"
          aria-label="Search VMs, disks and pages"
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={hits[at] ? `${listId}-${at}` : undefined}
          placeholder="Name, address, id or page"
          value={text}
          onChange={(event) => {
            setText(event.target.value)
            setAt(0)
          }}
          onKeyDown={onKeyDown}
          className="h-11 w-full bg-transparent outline-none"
        />
      </div>
      <div id={listId} role="listbox" aria-label="Results" className="max-h-[50vh] overflow-y-auto py-1">
        {hits.map((hit, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard is handled by the combobox
          // biome-ignore lint/a11y/useFocusableInteractive: the combobox keeps the focus
          <div
            key={hit.key}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => open(hit)}
            onMouseMove={() => setAt(index)}
            className="flex h-9 cursor-pointer items-center gap-3 px-3 aria-selected:bg-sunken"
          >
            <span className="min-w-0 flex-1 truncate">{hit.name}</span>
            <span className="truncate text-sm text-ink-muted">{hit.note}</span>
            <span className="w-12 text-right text-sm text-ink-muted">{hit.kind}</span>
          </div>
        ))}
      </div>
      {hits.length === 0 && (
        <p className="px-3 pb-3 text-ink-muted">Nothing has this in its name, address or id.</p>
      )}
    </>
  )
}

function useCandidates(): Hit[] {
  const projectId = useProjectId()
  const { caller } = useMe()
  const isIn = projectId !== ''
  const vms = useQuery({ ...readAll('vmList', { project_id: projectId }), enabled: isIn })
  const disks = useQuery({ ...readAll('diskList', { project_id: projectId }), enabled: isIn })
  return useMemo(() => {
    const base = `/projects/${projectId}`
    const pages = isIn
      ? [
          ...Object.values(destinations).map(({ name, path }) => ({ name, path })),
          { name: 'Create VM', path: '/vms/new' },
          { name: 'Networks', path: '/network/networks' },
          { name: 'Operations', path: '/operations' },
          { name: 'Access keys', path: '/settings/keys' },
          { name: 'Members', path: '/settings/members' },
          { name: 'Webhooks', path: '/settings/webhooks' },
          { name: 'Billing', path: '/settings/billing' },
        ].map(({ name, path }) => ({ key: `page ${path}`, name, kind: 'page', note: '', to: base + path }))
      : []
    const fleet = caller.is_operator
      ? [{ key: 'page fleet', name: 'Fleet', kind: 'page', note: '', to: '/fleet' }]
      : []
    return [
      ...(vms.data ?? []).map((vm) => ({
        key: vm.id,
        name: vm.name,
        kind: 'VM',
        note: `${vm.type} · ${stateWord(vm.state)} ${vm.ssh_destination.replace(/^.*@/, '')}`,
        to: `${base}/vms/${vm.id}`,
      })),
      ...(disks.data ?? []).map((disk) => ({
        key: disk.id,
        name: disk.name,
        kind: 'disk',
        note: `${sizeWords(disk.size)} · ${disk.location}`,
        to: `${base}/disks?disk=${disk.id}`,
      })),
      ...pages,
      ...fleet,
    ]
  }, [projectId, isIn, vms.data, disks.data, caller.is_operator])
}
