import { Link } from '@tanstack/react-router'

/** Links to an organization's page for operators. */
export const OrganizationLink = ({ id, name }: { id: string; name: string }) => (
  <Link
    to="/fleet/organizations/$organizationId"
    params={{ organizationId: id }}
    className="font-medium hover:text-accent-text hover:underline"
  >
    {name}
  </Link>
)
