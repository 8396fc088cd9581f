import { useEffect, useState } from 'react'
import { Icon } from './icon.tsx'

export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), 1500)
    return () => clearTimeout(timer)
  }, [isCopied])
  return (
    <button
      type="button"
      aria-label={isCopied ? 'Copied' : label}
      title={isCopied ? 'Copied' : label}
      className="-my-0.5 inline-flex size-6 shrink-0 items-center justify-center rounded-[4px] text-ink-muted hover:bg-sunken hover:text-ink"
      onClick={async (event) => {
        event.stopPropagation()
        event.preventDefault()
        await copyText(text)
        setCopied(true)
      }}
    >
      {isCopied ? (
        <Icon name="check" size={14} className="text-green-text" />
      ) : (
        <Icon name="copy" size={14} />
      )}
    </button>
  )
}

/** The clipboard API needs a secure origin; `execCommand` also works without one. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) {
    try {
      return await navigator.clipboard.writeText(text)
    } catch {}
  }
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}

/** A value in monospace with a copy button. */
export function Copyable({ text, shown = text, label }: { text: string; shown?: string; label?: string }) {
  if (!text) return <span className="text-ink-muted">–</span>
  return (
    <span className="inline-flex max-w-full min-w-0 items-center gap-1">
      <span className="mono min-w-0 truncate" title={shown === text ? undefined : text}>
        {shown}
      </span>
      <CopyButton text={text} label={label ?? `Copy ${text}`} />
    </span>
  )
}
