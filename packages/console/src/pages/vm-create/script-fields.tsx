import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { TextArea } from '../../ui/field.tsx'
import type { Draft } from './draft.ts'

export function ScriptFields({
  draft,
  onChange,
}: {
  draft: Draft
  onChange: (changes: Partial<Draft>) => void
}) {
  const [isOpen, setOpen] = useState(false)
  if (!isOpen)
    return (
      <div>
        <Button size="small" onClick={() => setOpen(true)}>
          Add start-up or shutdown script
        </Button>
      </div>
    )
  return (
    <>
      <TextArea
        label="Start-up script"
        rows={5}
        value={draft.startupScript}
        onChange={(startupScript) => onChange({ startupScript })}
        hint="Runs at every boot, as root: by /bin/sh, or by what its first line names after #!."
        placeholder={'#!/bin/bash\napt-get install -y htop'}
      />
      <TextArea
        label="Shutdown script"
        rows={3}
        value={draft.shutdownScript}
        onChange={(shutdownScript) => onChange({ shutdownScript })}
        hint="Runs before the VM stops; the VM is powered off after 90 s at the latest."
      />
    </>
  )
}
