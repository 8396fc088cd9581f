import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { sshKey } from '@slipway/testing/ssh-key.ts'
import { expect } from 'vitest'
import type { CompiledRule } from '../../src/domain/firewall.ts'
import type {
  AttachedDisk,
  Call,
  Engine,
  EngineErrorKind,
  HostReport,
  VmSpec,
  VmStatus,
  WantedState,
} from '../../src/engines/engine.ts'

export interface EngineUnderTest {
  engine: Engine
  host: string
  image: VmSpec['image']
  /** The size of the VM, if the engine has no room for a usual one. */
  size?: Pick<VmSpec, 'cpuCores' | 'memoryGb' | 'osDiskGib'>
  /** True if the host has no GPUs, and none can be declared. */
  isWithoutGpus?: boolean
  /** True if the storage cannot grow a disk that is attached to a running VM. */
  growsOnlyIdleDisks?: boolean
  /** The address that the control plane would have assigned to the VM. */
  publicAddress?: string
  /** True if clients reach the VM by every address of the range of its public address, not only by that one. */
  routesAnyAddress?: boolean
  /** The prompt on the serial console after Enter, for guests with a login there. */
  consolePrompt?: RegExp
  sshPublicKey?: string
  /** Verifies, for real guests, that the SSH destination responds. */
  sshCheck?: (destination: string) => Promise<void>
  /**
   * Returns whether the active firewall allows an unknown client to connect to this TCP port; undefined if this
   * cannot be read from the engine.
   */
  isOpen?: (vmId: string, port: number) => Promise<boolean>
  /** The maximum time to wait for each result. */
  patienceMs?: number
  close(): Promise<void>
}

/** One VM through its whole life, and helpers to inspect it. */
export class ConformanceBench {
  readonly subject: EngineUnderTest
  readonly engine: Engine
  readonly spec: VmSpec
  readonly signal = AbortSignal.timeout(900_000)
  generation = 0
  readonly #patienceMs: number

  private constructor(subject: EngineUnderTest, spec: VmSpec) {
    this.subject = subject
    this.engine = subject.engine
    this.spec = spec
    this.#patienceMs = subject.patienceMs ?? 280_000
  }

  static async open(subject: EngineUnderTest): Promise<ConformanceBench> {
    const spec: VmSpec = {
      ...{ id: randomUUID(), host: subject.host, name: 'conformance-1', projectId: randomUUID() },
      ...{ isNew: true, type: 'a100-80gb.1x', cpuCores: 12, memoryGb: 120, osDiskGib: 128, scratchGb: 0 },
      ...subject.size,
      gpus: [],
      image: subject.image,
      sshPublicKeys: [subject.sshPublicKey ?? sshKey],
      sshHostKey: null,
      group: null,
      startupScript: '#!/bin/sh\necho started\n',
      shutdownScript: '',
      network: {
        networkId: randomUUID(),
        macAddress: '52:54:00:c0:f0:01',
        privateAddress: '172.27.0.10',
        subnetCidr: '172.27.0.0/20',
        gateway: '172.27.0.1',
        publicAddress: subject.publicAddress ?? '127.100.0.7',
      },
      disks: [],
    }
    const bench = new ConformanceBench(subject, spec)
    const [gpu] = (await bench.report()).gpus
    if (gpu) spec.gpus.push({ pciAddress: gpu.pciAddress, model: gpu.model })
    return bench
  }

  next = (): Call => this.at(++this.generation)
  same = (): Call => this.at(this.generation)
  older = (): Call => this.at(this.generation - 1)
  /** The wanted state of the VM; by default with a firewall that allows only SSH. */
  wanted = (power: 'on' | 'off', firewallGeneration = 2, ports = [22]): WantedState => ({
    firewall: { rules: ports.map(allow), generation: firewallGeneration },
    power,
  })
  at = (generation: number): Call => ({ generation, signal: this.signal })

  /**
   * Returns the report of the VM's host, with every disk and copy of the inventory, because shared storage belongs to no host.
   */
  async report(isDetailed?: (host: string) => boolean): Promise<HostReport> {
    const hosts: HostReport[] = []
    for await (const host of this.engine.inventory(this.signal, isDetailed)) hosts.push(host)
    const own = hosts.find(({ name }) => name === this.subject.host)
    if (!own) throw new Error(`no host ${this.subject.host} in the inventory`)
    return {
      ...own,
      disks: hosts.flatMap(({ disks }) => disks),
      captures: hosts.flatMap(({ captures = [] }) => captures),
    }
  }

  inspect(): Promise<VmStatus | null> {
    return this.engine.inspectVm({ id: this.spec.id, host: this.spec.host }, this.signal)
  }

  async power(): Promise<VmStatus['power'] | undefined> {
    return (await this.inspect())?.power
  }

  async until(power: VmStatus['power']): Promise<VmStatus> {
    return this.eventually(async () => {
      const status = await this.inspect()
      if (status?.power === 'crashed') throw new Error(`crashed: ${status.detail}`)
      return status?.power === power && status
    }, power)
  }

  async eventually<T>(probe: () => Promise<T | false> | T | false, what: string): Promise<T> {
    const deadline = Date.now() + this.#patienceMs
    for (;;) {
      const found = await probe()
      if (found !== false) return found
      if (Date.now() > deadline) throw new Error(`timed out: ${what}`)
      await sleep(Math.min(100, this.#patienceMs / 20))
    }
  }

  /** Checks which ports the active firewall allows, if this can be read from the engine. */
  async expectPorts(expected: { open: number[]; shut: number[] }): Promise<void> {
    const { isOpen } = this.subject
    if (!isOpen) return
    for (const port of expected.open) expect([port, await isOpen(this.spec.id, port)]).toEqual([port, true])
    for (const port of expected.shut) expect([port, await isOpen(this.spec.id, port)]).toEqual([port, false])
  }

  /** The offset at which the serial log ends. */
  async serialEnd(): Promise<number> {
    for (let offset = 0; ; ) {
      const { nextOffset } = await this.engine.serialLog(this.spec, offset, this.signal)
      if (nextOffset === offset) return offset
      offset = nextOffset
    }
  }

  newDisk(): AttachedDisk {
    const id = randomUUID()
    return {
      ...{ id, host: this.subject.host, type: 'persistent-ssd', sizeGib: 1, blockSize: 512 },
      ...{ serialNumber: id.replaceAll('-', '').slice(-20), mode: 'read-write' },
    }
  }
}

export function allow(port: number): CompiledRule {
  return {
    ...{ ruleId: randomUUID(), action: 'allow', direction: 'ingress', protocols: ['tcp'] },
    ...{ peers: ['0.0.0.0/0'], sourcePorts: [], destinationPorts: [[port, port]] },
  }
}

export async function expectKind(kind: EngineErrorKind, work: Promise<unknown>): Promise<void> {
  await expect(work).rejects.toMatchObject({ name: 'EngineError', kind })
}
