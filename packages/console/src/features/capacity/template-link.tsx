import { Link } from '@tanstack/react-router'
import { useProjectId } from '../../api/me.ts'
import { readAll } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'

/** Links to a version of a template: "trainer, version 3". */
export function TemplateLink({ id }: { id: string }) {
  const projectId = useProjectId()
  const templates = useQuery({
    ...readAll('instanceTemplateList', { project_id: projectId }),
    enabled: id !== '',
  })
  if (id === '') return 'none'
  const template = templates.data?.find((each) => each.id === id)
  if (!template) return templates.data ? 'deleted' : '…'
  return (
    <Link to="/projects/$projectId/templates" params={{ projectId }} search={{ open: id }} className="link">
      {template.name}, version {template.version}
    </Link>
  )
}
