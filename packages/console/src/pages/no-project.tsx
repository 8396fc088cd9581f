import { useState } from 'react'
import { useMe } from '../api/me.ts'
import { CreateProject } from '../features/create-project.tsx'
import { curlCommand } from '../lib/shell.ts'
import { Button } from '../ui/button.tsx'
import { Empty, Page } from '../ui/page.tsx'

export function NoProject() {
  const { organizations } = useMe()
  const [isCreating, setCreating] = useState(false)
  const organization = organizations[0]
  if (!organization)
    return (
      <Page title="Projects">
        <Empty title="You are not a member of any organization yet">
          Ask an owner for an invitation. The organization’s projects will then appear here.
        </Empty>
      </Page>
    )
  return (
    <Page title="Projects">
      <Empty
        title="No projects yet"
        action={
          <Button kind="primary" onClick={() => setCreating(true)}>
            Create project
          </Button>
        }
        cli="slipway project create research"
        curl={curlCommand('POST', '/v0.1/projects', { name: 'research', organization_id: organization.id })}
      >
        A project contains VMs, disks and networks, and has its own access keys and budget.
      </Empty>
      <CreateProject isOpen={isCreating} onClose={() => setCreating(false)} />
    </Page>
  )
}
