import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { readAll } from '../api/read.ts'
import { shortId } from './format.ts'

/** Words for the VMs, subnets and networks that firewall rules point to. */
export function useEndpointNames(projectId: string): (id: string) => string {
  const vms = useQuery(readAll('vmList', { project_id: projectId }))
  const subnets = useQuery(readAll('subnetList', { project_id: projectId }))
  const networks = useQuery(readAll('networkList', { project_id: projectId }))
  return useMemo(() => {
    const names = new Map<string, string>()
    for (const vm of vms.data ?? []) names.set(vm.id, vm.name)
    for (const subnet of subnets.data ?? []) names.set(subnet.id, `the subnet ${subnet.name}`)
    for (const network of networks.data ?? []) names.set(network.id, `the network ${network.name}`)
    return (id) => names.get(id) ?? `something deleted (…${shortId(id)})`
  }, [vms.data, subnets.data, networks.data])
}
