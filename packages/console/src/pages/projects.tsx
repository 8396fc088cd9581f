import { useMe } from '../api/me.ts'
import { ProjectSummaries } from '../features/project-summaries.tsx'
import { Page } from '../ui/page.tsx'
import { NoProject } from './no-project.tsx'

/** Running VMs and costs in all projects of the user's organizations. */
export function Projects() {
  const { organizations, projects } = useMe()
  if (projects.length === 0) return <NoProject />
  return (
    <Page title="All projects">
      {organizations.map(({ id, name }) => (
        <ProjectSummaries key={id} organizationId={id} title={name} label={`Projects of ${name}`} />
      ))}
    </Page>
  )
}
