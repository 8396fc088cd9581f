import { useMemo } from 'react'
import { read } from './read.ts'
import { useQuery } from './use-query.ts'

/** Prices are the operator's: no event of a project tells that one has changed. */
const refetchMs = 30_000

export const usePrices = (projectId: string) =>
  useQuery({ ...read('priceList', { params: { project_id: projectId } }), refetchInterval: refetchMs })

/** Returns what a product costs now: undefined until prices are read, and where none is set. */
export function usePriceOf(projectId: string): (productName: string) => number | undefined {
  const { data } = usePrices(projectId)
  return useMemo(() => {
    const byName = new Map(data?.items.map(({ product_name, usd }) => [product_name, usd]))
    return (productName) => byName.get(productName)
  }, [data])
}
