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
          Add startup or shutdown script
        </Button>
      </div>
    )
  return (
    <>
      <TextArea
        label="Startup script"
        rows={5}
        value={draft.startupScript}
        onChange={(startupScript) => onChange({ startupScript })}
        hint="Runs as root at every boot, with /bin/sh or the interpreter in its #! line."
        placeholder={'#!/bin/bash\napt-get install -y htop'}
      />
      <TextArea
        label="Shutdown script"
        rows={3}
        value={draft.shutdownScript}
        onChange={(shutdownScript) => onChange({ shutdownScript })}
        hint="Runs before the VM stops. The VM is powered off after at most 90 s."
      />
    </>
  )
}
