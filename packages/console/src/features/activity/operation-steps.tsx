import { read } from '../../api/read.ts'
import { useQuery } from '../../api/use-query.ts'
import { Loaded } from '../../ui/loaded.tsx'
import { Steps } from '../steps.tsx'

interface OperationStepsProps {
  projectId: string
  operationId: string
}

/** The steps of one operation, below its row. */
export default function OperationSteps({ projectId, operationId }: OperationStepsProps) {
  const operation = useQuery({
    ...read('operationGet', { params: { project_id: projectId, operation_id: operationId } }),
    refetchInterval: ({ state }) => (state.data?.state === 'IN_PROGRESS' ? 1_000 : false),
  })
  return (
    <Loaded query={operation} rows={2}>
      {(data) => <Steps projectId={projectId} operation={data} />}
    </Loaded>
  )
}
