import { useState } from 'react'
import { useMe } from '../api/me.ts'
import { CreateProject } from '../features/create-project.tsx'
import { curlLine } from '../lib/command-lines.ts'
import { Button } from '../ui/button.tsx'
import { Empty, Page } from '../ui/page.tsx'

export function NoProject() {
  const { organizations } = useMe()
  const [isCreating, setCreating] = useState(false)
  const organization = organizations[0]
  if (!organization)
    return (
      <Page title="Projects">
        <Empty title="You belong to no organization yet">
          An owner can invite you by e-mail; then its projects appear here.
        </Empty>
      </Page>
    )
  return (
    <Page title="Projects">
      <Empty
        title="No project yet"
        action={
          <Button kind="primary" onClick={() => setCreating(true)}>
            Create project
          </Button>
        }
        cli="slipway project create research"
        curl={curlLine('POST', '/v0.1/projects', { name: 'research', organization_id: organization.id })}
      >
        A project holds VMs, disks and a network, with its own keys, quotas and budget.
      </Empty>
      <CreateProject isOpen={isCreating} onClose={() => setCreating(false)} />
    </Page>
  )
}
