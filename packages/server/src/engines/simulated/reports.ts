import { families, familyOfModel } from '@slipway/contract'
import { lostXid, meaningOf } from '../../domain/health/xids.ts'
import type { SimulatedContents, SimulatedHost, SimulatedVm } from '../../store/simulated/objects.ts'
import type { AttachedDisk, GpuReport, HostReport, VmSpec, VmStatus } from '../engine.ts'

export const disksOf = (vm: SimulatedVm) => (vm.spec as { disks?: AttachedDisk[] }).disks ?? []

/** Returns the VM's current power state. Booting and shutting down end after a fixed time. */
export function powerOf(vm: Pick<SimulatedVm, 'power' | 'ready_in_ms'>): VmStatus['power'] {
  const isReady = (vm.ready_in_ms ?? 0) <= 0
  switch (vm.power) {
    case 'on':
      return isReady ? 'running' : 'booting'
    case 'shutdown':
      return isReady ? 'off' : 'stopping'
    default:
      return vm.power
  }
}

export function status(vm: SimulatedVm): VmStatus {
  const power = powerOf(vm)
  const { image, network } = vm.spec as unknown as VmSpec
  const user = /^[a-z]+/.exec(image?.name ?? '')?.[0] ?? 'root'
  const isChanging = power === 'booting' || power === 'stopping'
  return {
    id: vm.id,
    generation: vm.generation,
    power,
    sshDestination: power === 'running' && network?.publicAddress ? `${user}@${network.publicAddress}` : '',
    publicAddress: network?.publicAddress ?? '',
    ...(isChanging && { etaMs: Math.ceil(vm.ready_in_ms ?? 0) + 1 }),
    firewallGeneration: vm.firewall_generation,
    diskIds: disksOf(vm).map(({ id }) => id),
  }
}

export function briefReport({ name, model, gpu_count, xids }: SimulatedHost): HostReport {
  const share = families[familyOfModel(model) ?? 'a40']
  const foundAt = (pciAddress: string) => xids.filter(({ pci_address }) => pci_address === pciAddress)
  return {
    name,
    isSummary: true,
    cpuCores: share.cpuCores * gpu_count,
    memoryGb: share.memoryGb * gpu_count,
    capabilities: { simulated: true },
    gpus: Array.from({ length: gpu_count }, (_, index) => {
      const pciAddress = `0000:${(0x10 + index).toString(16)}:00.0`
      return {
        pciAddress,
        model,
        numaNode: index < gpu_count / 2 ? 0 : 1,
        iommuGroup: index,
        holderVmId: null,
        isClean: false,
        ...evidenceOf(foundAt(pciAddress)),
      }
    }),
    vms: [],
    disks: [],
  }
}

/** A GPU with an error that requires a replacement no longer responds. */
function evidenceOf(found: SimulatedHost['xids']): Pick<GpuReport, 'check' | 'xids'> {
  const passed = !found.some(({ xid }) => meaningOf(xid) === 'replace')
  const xids = found.filter(({ xid }) => xid !== lostXid).map(({ xid, at }) => ({ xid, at }))
  return {
    check: { passed, reasons: passed ? [] : ['The GPU does not respond.'] },
    ...(xids.length > 0 && { xids }),
  }
}

type ReportedVm = SimulatedContents['vms'][number]

export function detailedReport(
  host: SimulatedHost,
  { vms, dirty }: SimulatedContents,
  quarantineMs: number,
): HostReport {
  const brief = briefReport(host)
  // A VM that is off holds no GPUs; its GPUs stay unclean for the quarantine time.
  const isOff = (vm: ReportedVm) => powerOf(vm) === 'off'
  const gpusOf = (some: ReportedVm[]) => some.flatMap((vm) => vm.gpus.map((pci) => [pci, vm.id] as const))
  const holderOf = new Map(gpusOf(vms.filter((vm) => !isOff(vm))))
  const isRecent = (vm: ReportedVm) => (vm.ready_in_ms ?? 0) > -quarantineMs
  const released = gpusOf(vms.filter((vm) => isOff(vm) && isRecent(vm)))
  const unclean = new Set([...dirty, ...released.map(([pci]) => pci), ...holderOf.keys()])
  return {
    ...brief,
    isSummary: false,
    gpus: brief.gpus.map((gpu) => ({
      ...gpu,
      holderVmId: holderOf.get(gpu.pciAddress) ?? null,
      isClean: !unclean.has(gpu.pciAddress),
    })),
    vms: vms.map((vm) => ({
      id: vm.id,
      generation: vm.generation,
      power: powerOf(vm),
      firewallGeneration: vm.firewall_generation,
    })),
  }
}
