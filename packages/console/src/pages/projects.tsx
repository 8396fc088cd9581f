import { useState } from 'react'
import { useMe, useWhyNot } from '../api/me.ts'
import { CreateProject } from '../features/create-project.tsx'
import { ProjectSummaries } from '../features/project-summaries.tsx'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Page } from '../ui/page.tsx'
import { NoProject } from './no-project.tsx'

/** Running VMs and costs in all projects of the user's organizations. */
export function Projects() {
  const { organizations, projects } = useMe()
  // With several organizations, the dialog asks for one.
  const whyNot = useWhyNot('admin', organizations.length === 1 ? organizations[0]!.id : '')
  const [isCreating, setCreating] = useState(false)
  if (projects.length === 0) return <NoProject />
  return (
    <Page
      title="All projects"
      actions={
        <Button
          kind="primary"
          icon={<Icon name="plus" size={16} />}
          reason={whyNot}
          onClick={() => setCreating(true)}
        >
          Create project
        </Button>
      }
    >
      {organizations.map(({ id, name }) => (
        <ProjectSummaries key={id} organizationId={id} title={name} label={`Projects of ${name}`} />
      ))}
      <CreateProject isOpen={isCreating} onClose={() => setCreating(false)} />
    </Page>
  )
}
