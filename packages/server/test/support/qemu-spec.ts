import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
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

const report = readFileSync(join(import.meta.dirname, 'fixtures/gpu/h200-busy-nvidia-smi.xml'), 'utf8')
/** A startup script that installs an `nvidia-smi` which shows a real H200 under load. */
export const fakeNvidiaSmi = `#!/bin/sh
cat >/root/report.xml <<'END_OF_REPORT'
${report}
END_OF_REPORT
printf '#!/bin/sh\\ncat /root/report.xml\\n' >/usr/bin/nvidia-smi
chmod 755 /usr/bin/nvidia-smi
`
/** Kills the reporter of a guest. Init starts the reporter again, and it reports immediately. */
export const reportNow = `kill $(ps | awk '/[s]bin.slipway-guest/ { print $1 }')`
