import { type Vm, vmStateTable } from '@slipway/sdk'
import { useCallback, useMemo } from 'react'
import { read } from './read.ts'
import { useQuery } from './use-query.ts'

/** Operators change prices without an event in the project, so prices are polled. */
const refetchMs = 30_000

export const usePrices = (projectId: string) =>
  useQuery({ ...read('priceList', { params: { project_id: projectId } }), refetchInterval: refetchMs })

/** Returns a function that returns a product's current price; undefined if it is not loaded or not set. */
export function usePriceOf(projectId: string): (productName: string) => number | undefined {
  const { data } = usePrices(projectId)
  return useMemo(() => {
    const byName = new Map(data?.items.map(({ product_name, usd }) => [product_name, usd]))
    return (productName) => byName.get(productName)
  }, [data])
}

export type UsdPerHour = (vm: Vm) => number | null

/** Returns a function that returns the current price of a VM; 0 in states that are not billed. */
export function useUsdPerHour(projectId: string): UsdPerHour {
  const priceOf = usePriceOf(projectId)
  return useCallback(
    (vm) => (vmStateTable[vm.state].isBilled ? (priceOf(vm.type) ?? vm.usd_per_hour) : 0),
    [priceOf],
  )
}
