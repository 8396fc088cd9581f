import { randomUUID } from 'node:crypto'
import type { CompiledRule } from '../../src/domain/firewall.ts'
import type { AttachedDisk, VmSpec, WantedState } from '../../src/engines/engine.ts'
import type { QemuBench } from './qemu-bench.ts'

let count = 0

export function specOf(bench: QemuBench, host: string, changes: Partial<VmSpec> = {}): VmSpec {
  const number = ++count
  const name = changes.name ?? `guest-${number}`
  return {
    ...{ id: randomUUID(), host, name, projectId: randomUUID(), isNew: true, type: 'a100-80gb.1x' },
    ...{ cpuCores: 12, memoryGb: 120, gpus: [], image: bench.image, osDiskGib: 128, scratchGb: 0 },
    sshPublicKeys: [bench.sshPublicKey],
    sshHostKey: null,
    group: null,
    startupScript: `#!/bin/sh\necho startup script of ${name}\necho yes > /root/made-by-startup\n`,
    shutdownScript: `#!/bin/sh\necho shutdown script of ${name}\n`,
    network: {
      networkId: randomUUID(),
      macAddress: `52:54:00:00:01:${number.toString(16).padStart(2, '0')}`,
      privateAddress: `172.27.0.${10 + number}`,
      ...{ subnetCidr: '172.27.0.0/20', gateway: '172.27.0.1', publicAddress: bench.publicAddress },
    },
    disks: [],
    ...changes,
  }
}

/** The wanted power state and rules. A test that does not use the firewall has no rules. */
export const wanted = (power: 'on' | 'off', rules: CompiledRule[] = [], generation = 1): WantedState => ({
  power,
  firewall: { rules, generation },
})

export function diskOf(host: string, changes: Partial<AttachedDisk> = {}): AttachedDisk {
  const id = randomUUID()
  return {
    ...{ id, host, type: 'persistent-ssd', sizeGib: 1, blockSize: 512, mode: 'read-write' },
    serialNumber: id.replaceAll('-', '').slice(-20),
    ...changes,
  }
}
