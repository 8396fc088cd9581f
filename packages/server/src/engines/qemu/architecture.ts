import { EngineError } from '../engine.ts'

/** Properties that depend on the host's CPU architecture. A guest always has the architecture of its host. */
export interface Architecture {
  name: 'x86_64' | 'aarch64'
  debianName: 'amd64' | 'arm64'
  qemuProgram: string
  qemuPackage: string
  machineType: string
  tcgCpu: string
  serialConsole: string
  /** The path at which the mini guest's dropbear expects the dynamic linker. */
  dynamicLinker: string
  /** Only x86_64 has ACPI, and so a power button, when the kernel boots without firmware. */
  hasPowerButtonWithoutFirmware: boolean
}

const architectures: Record<string, Architecture> = {
  x64: {
    name: 'x86_64',
    debianName: 'amd64',
    qemuProgram: 'qemu-system-x86_64',
    qemuPackage: 'qemu-system-x86',
    machineType: 'q35',
    tcgCpu: 'max',
    serialConsole: 'ttyS0',
    dynamicLinker: 'lib64/ld-linux-x86-64.so.2',
    hasPowerButtonWithoutFirmware: true,
  },
  arm64: {
    name: 'aarch64',
    debianName: 'arm64',
    qemuProgram: 'qemu-system-aarch64',
    qemuPackage: 'qemu-system-arm',
    machineType: 'virt,gic-version=max',
    // `max` also emulates pointer authentication and long vectors, which slows down every function call.
    tcgCpu: 'neoverse-n1',
    serialConsole: 'ttyAMA0',
    dynamicLinker: 'lib/ld-linux-aarch64.so.1',
    hasPowerButtonWithoutFirmware: false,
  },
}

export function hostArchitecture(nodeArch: string = process.arch): Architecture {
  const architecture = architectures[nodeArch]
  if (!architecture)
    throw new EngineError(
      'rejected',
      `the qemu engine does not support ${nodeArch}. Supported: x86_64, aarch64.`,
    )
  return architecture
}
