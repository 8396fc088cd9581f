import { Link } from '@tanstack/react-router'
import { operationText } from '../steps.tsx'
import type { AdminOperation } from './stuck-actions.tsx'

/** A link to the operators' page of an operation. */
export const OperationLink = ({ operation }: { operation: AdminOperation }) => (
  <Link
    to="/fleet/operations/$operationId"
    params={{ operationId: operation.operation_id }}
    title={operation.operation_id}
    className="font-medium hover:text-accent-text hover:underline"
  >
    {operationText(operation)}
  </Link>
)
