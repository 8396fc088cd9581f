import type { GuestReport } from '../../domain/guest/report.ts'
import type { RunningVm } from '../../store/simulated/objects.ts'
import type { VmSample } from '../engine.ts'

/** Memory in MiB and the power limit in watts of the simulated models. */
const hardware: Record<string, { memoryMib: number; watts: number }> = {
  'A40 48GB PCIe': { memoryMib: 46_068, watts: 300 },
  'A100 40GB PCIe': { memoryMib: 40_960, watts: 250 },
  'A100 80GB PCIe': { memoryMib: 81_920, watts: 300 },
  'L40S 48GB PCIe': { memoryMib: 46_068, watts: 350 },
}
const idleWatts = 35
const hourS = 3_600

/**
 * Returns a sample of a simulated VM. The load rises and falls once an hour, unless a `--dev` lever has set
 * another load.
 */
export function simulatedSample(vm: RunningVm): VmSample {
  const phase = Number.parseInt(vm.id.slice(-4), 16) / 0xffff
  const wave = Math.sin((vm.now_s / hourS + phase) * 2 * Math.PI)
  const { metrics } = vm
  const utilization =
    metrics && 'gpu_utilization' in metrics ? metrics.gpu_utilization : round(70 + 25 * wave)
  const isSilent = metrics !== null && 'silent' in metrics
  return {
    vmId: vm.id,
    host: {
      slipway_vm_cpu_seconds_total: round(vm.up_s * vm.cpu_cores * 0.25),
      slipway_vm_memory_bytes: Math.round(vm.memory_gb * 2 ** 30 * (0.3 + utilization / 200)),
      slipway_vm_disk_read_bytes_total: Math.round(vm.up_s * 40_000_000),
      slipway_vm_disk_written_bytes_total: Math.round(vm.up_s * 10_000_000),
      slipway_vm_network_receive_bytes_total: Math.round(vm.up_s * 5_000_000),
      slipway_vm_network_transmit_bytes_total: Math.round(vm.up_s * 1_000_000),
    },
    guest: isSilent ? null : guestReport(vm, utilization, metrics?.ssh_sessions ?? 0),
  }
}

function guestReport(
  { id, gpus, model, boot, xids }: RunningVm,
  utilization: number,
  sshSessions: number,
): GuestReport {
  const { memoryMib, watts } = hardware[model] ?? { memoryMib: 81_920, watts: 300 }
  const used = Math.round((memoryMib * utilization) / 110)
  return {
    sshSessions,
    gpus: gpus.map((_, index) => ({
      uuid: `GPU-${id.slice(0, -2)}${index.toString(16).padStart(2, '0')}`,
      name: `NVIDIA ${model}`,
      values: [
        utilization,
        used,
        memoryMib - used,
        Math.round(32 + utilization * 0.35),
        round(idleWatts + ((watts - idleWatts) * utilization) / 100),
        Math.round(210 + utilization * 12),
        0,
        0,
      ],
      recovery: null,
    })),
    boot,
    xids,
  }
}

const round = (value: number) => Math.round(value * 100) / 100
