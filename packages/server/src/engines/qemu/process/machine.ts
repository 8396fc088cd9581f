import { maxDisksPerVm } from '@slipway/contract'
import { isUuid, zeroUuid } from '../../../domain/ids.ts'
import type { AttachedDisk, VmSpec } from '../../engine.ts'
import { guestPort } from '../../guest-reporter.ts'
import type { Architecture } from '../architecture.ts'
import { type PassthroughGpu, vfioArguments } from '../gpu/vfio.ts'

export type Accelerator = 'kvm' | 'tcg'

/** QEMU has no access to the images folder, so it inherits open files. */
const osBaseFd = 3
const kernelFd = 4
const initrdFd = 5
const serialLog = 'logfile=serial.log,logappend=on'
const descriptor = (fd: number) => `/proc/self/fd/${fd}`

export interface Machine {
  arch: Architecture
  accelerator: Accelerator
  /** Size of the emulator's cache of translated code. */
  translationCacheMib: number
  spec: VmSpec
  memoryMib: number
  cpuCores: number
  runId: string
  /** Identifies the VM and the run in the process list. */
  label: string
  boot: { kind: 'kernel' } | { kind: 'disk'; firmware: { code: string; variables: string } | null }
  /** Format of the OS disk's base image, which is open as descriptor `osBaseFd`. */
  osBaseFormat: 'qcow2' | 'raw'
  gpus: PassthroughGpu[]
  hasScratch: boolean
}

/** Returns QEMU's arguments. Relative paths are in the VM's folder, which is QEMU's working directory. */
export function machineArguments(machine: Machine): string[] {
  const { arch, spec } = machine
  const disksOf = (type: AttachedDisk['type']) => spec.disks.filter((disk) => disk.type === type)
  return [
    ...['-name', `${machine.label},process=slipway-vm`, '-uuid', uuidOf(spec.id)],
    ...['-nodefaults', '-no-user-config', '-display', 'none'],
    ...['-machine', `${arch.machineType},memory-backend=ram`],
    ...['-object', `memory-backend-memfd,id=ram,size=${machine.memoryMib}M,share=on`],
    ...['-m', `${machine.memoryMib}M`, '-smp', `${machine.cpuCores}`],
    ...(machine.accelerator === 'kvm'
      ? ['-accel', 'kvm', '-cpu', 'host']
      : ['-accel', `tcg,thread=multi,tb-size=${machine.translationCacheMib}`, '-cpu', arch.tcgCpu]),
    ...['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'],
    // The guest starts only after QEMU has lost write access to its folder.
    ...['-S', '-qmp', 'unix:sockets/qmp.sock,server=on,wait=off'],
    // The log is written whether or not a client is connected. A client that does not read would block the
    // guest's output.
    ...['-chardev', `socket,id=serial,path=sockets/serial.sock,server=on,wait=off,${serialLog}`],
    ...['-serial', 'chardev:serial'],
    ...bootArguments(machine),
    ...hotplugSlots(),
    ...osDisk(machine),
    ...fixedDisk('slipway-seed', 'seed.iso', 'raw', 'seed'),
    ...(machine.hasScratch ? fixedDisk('slipway-scratch', 'scratch.qcow2', 'qcow2', 'scratch') : []),
    ...disksOf('persistent-ssd').flatMap((disk, slot) => [
      ...['-blockdev', JSON.stringify(blockNode(disk))],
      ...['-device', JSON.stringify(diskDevice(disk, `disk-slot${slot}`))],
    ]),
    ...disksOf('shared-volume').flatMap((volume, slot) => [
      ...['-chardev', `socket,id=chr-${deviceId(volume.id)},path=${volumeSocket(spec.id, volume.id)}`],
      ...['-device', JSON.stringify(volumeDevice(volume, `volume-slot${slot}`))],
    ]),
    ...agentPort,
    ...networkArguments(machine),
    ...['-device', 'virtio-keyboard-pci', '-device', 'virtio-rng-pci'],
    ...guestPortArguments(),
    ...vfioArguments(machine.gpus, arch.name),
  ]
}

function bootArguments({ boot, arch, accelerator }: Machine): string[] {
  if (boot.kind === 'kernel') {
    // An emulated CPU does not speculate, and its cryptography does not need a test at each boot. With random
    // addresses, the same code would be translated again for every process.
    const emulated = accelerator === 'tcg' ? ' mitigations=off cryptomgr.notests norandmaps' : ''
    const commandLine = `console=${arch.serialConsole} quiet loglevel=4 panic=-1${emulated}`
    return ['-kernel', descriptor(kernelFd), '-initrd', descriptor(initrdFd), '-append', commandLine]
  }
  if (!boot.firmware) return []
  return [
    ...['-drive', `if=pflash,unit=0,format=raw,readonly=on,file=${boot.firmware.code}`],
    ...['-drive', `if=pflash,unit=1,format=raw,file=${boot.firmware.variables}`],
  ]
}

/**
 * Eight root ports share a slot of the root bus. They reserve no I/O windows, because x86 has too few of
 * them.
 */
function hotplugSlots(): string[] {
  const names = [...slotNames('persistent-ssd'), ...slotNames('shared-volume')]
  return names.flatMap((id, index) => [
    '-device',
    `pcie-root-port,id=${id},bus=pcie.0,addr=${(0x10 + (index >> 3)).toString(16)}.${index & 7},multifunction=on,` +
      `chassis=${index + 1},slot=${index + 1},io-reserve=0`,
  ])
}

/** Names the base image explicitly, so that the header of the file, which a guest could change, has no effect. */
function osDisk({ osBaseFormat, boot }: Machine): string[] {
  const node = {
    ...{
      driver: 'qcow2',
      'node-name': 'os',
      discard: 'unmap',
      file: { driver: 'file', filename: 'os.qcow2' },
    },
    backing: {
      ...{ driver: osBaseFormat, 'read-only': true },
      file: { driver: 'file', filename: descriptor(osBaseFd), 'read-only': true },
    },
  }
  const order = boot.kind === 'disk' ? ',bootindex=0' : ''
  return [
    ...['-blockdev', JSON.stringify(node)],
    ...['-device', `virtio-blk-pci,drive=os,serial=slipway-os,id=os-device${order}`],
  ]
}

function fixedDisk(serial: string, file: string, format: string, id: string): string[] {
  const readOnly = id === 'seed' ? ',read-only=on' : ',discard=unmap'
  return [
    ...['-blockdev', `driver=${format},node-name=${id},file.driver=file,file.filename=${file}${readOnly}`],
    ...['-device', `virtio-blk-pci,drive=${id},serial=${serial},id=${id}-device`],
  ]
}

/** The port of the QEMU guest agent, which freezes the guest's file systems for a copy. */
const agentPort = [
  ...['-device', 'virtio-serial-pci,id=agent-bus,max_ports=2'],
  ...['-chardev', 'socket,id=agent,path=sockets/agent.sock,server=on,wait=off'],
  ...['-device', 'virtserialport,bus=agent-bus.0,chardev=agent,name=org.qemu.guest_agent.0'],
]

/** Each network card uses a unix socket to the forwarder, so QEMU itself opens no connection and no port. */
function networkArguments({ spec }: Machine): string[] {
  const card = (id: string, mac: string) => [
    ...['-netdev', `stream,id=${id},server=on,addr.type=unix,addr.path=sockets/${id}.sock`],
    ...['-device', `virtio-net-pci,netdev=${id},mac=${mac},romfile=`],
  ]
  return [...card('access', accessMac(spec.network.macAddress)), ...card('segment', spec.network.macAddress)]
}

/**
 * The buffer for the guest's reports. QEMU keeps the last bytes in memory until they are read, so that a
 * guest never waits for a reader and cannot fill a disk.
 */
export const guestRing = { id: 'guest-reports', bytes: 64 * 1024 }

const guestPortArguments = () => [
  ...['-chardev', `ringbuf,id=${guestRing.id},size=${guestRing.bytes}`],
  ...['-device', 'virtio-serial-pci,id=guest-serial'],
  ...['-device', `virtserialport,bus=guest-serial.0,chardev=${guestRing.id},name=${guestPort}`],
]

export function blockNode(disk: AttachedDisk): Record<string, unknown> {
  return {
    driver: 'qcow2',
    'node-name': `node-${deviceId(disk.id)}`,
    'read-only': disk.mode === 'read-only',
    discard: 'unmap',
    file: { driver: 'file', filename: diskLink(disk.id) },
  }
}

/** The disk's hard link in the VM's folder, because QEMU has no access to the disks folder. */
export function diskLink(diskId: string): string {
  return `disk-${diskId}.qcow2`
}

/**
 * The address is explicit, because QEMU would otherwise assign a second device an address that a root port
 * does not have.
 */
export function diskDevice(disk: AttachedDisk, slot: string): Record<string, unknown> {
  return {
    driver: 'virtio-blk-pci',
    id: `disk-${deviceId(disk.id)}`,
    bus: slot,
    addr: '0',
    drive: `node-${deviceId(disk.id)}`,
    serial: disk.serialNumber.slice(0, 20),
    logical_block_size: disk.blockSize,
    physical_block_size: disk.blockSize,
  }
}

export function volumeDevice(volume: AttachedDisk, slot: string): Record<string, unknown> {
  return {
    driver: 'vhost-user-fs-pci',
    id: `volume-${deviceId(volume.id)}`,
    bus: slot,
    addr: '0',
    chardev: `chr-${deviceId(volume.id)}`,
    tag: volumeTag(volume),
  }
}

/** The guest mounts the volume with `mount -t virtiofs <tag> /mnt`. */
function volumeTag(volume: AttachedDisk): string {
  return volume.serialNumber.slice(0, 35)
}

/**
 * Unique across VMs, although the socket is in the VM's folder, because the virtiofsd of QEMU 7.2 derives the
 * name of its lock from the socket's name without the folder.
 */
export function volumeSocket(vmId: string, diskId: string): string {
  return `volume-${deviceId(diskId)}-${vmId}.sock`
}

/** One hot-plug slot for each disk that a VM can have. */
export function slotNames(type: AttachedDisk['type']): string[] {
  const kind = type === 'persistent-ssd' ? 'disk' : 'volume'
  return Array.from({ length: maxDisksPerVm[type] }, (_, index) => `${kind}-slot${index}`)
}

/** Returns a short form of the id, because QEMU allows only 31 characters for the name of a block node. */
export function deviceId(id: string): string {
  return id.replaceAll('-', '').slice(-24)
}

/** The MAC address of the network card on the access network, derived from that of the private card. */
export function accessMac(privateMac: string): string {
  const bytes = privateMac.split(':').map((byte) => Number.parseInt(byte, 16))
  bytes[0] = (bytes[0]! ^ 0x08) | 0x02
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(':')
}

function uuidOf(id: string): string {
  return isUuid(id) ? id : zeroUuid
}
