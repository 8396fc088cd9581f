import { join, resolve } from 'node:path'

/**
 * All locations of a data directory share this folder. The path is absolute, because QEMU resolves a relative
 * backing file against the folder of the overlay.
 */
export function imagesDir(dataDir: string): string {
  return resolve(dataDir, 'qemu', 'images')
}

/** The files of one location's engine; other users have no access to the folder. */
export class StatePaths {
  readonly root: string
  readonly vms: string
  readonly disks: string
  readonly captures: string
  readonly fences: string
  readonly host: string
  readonly forwarderLog: string

  constructor(dataDir: string, location: string) {
    this.root = resolve(dataDir, 'qemu', location)
    this.vms = join(this.root, 'vms')
    this.disks = join(this.root, 'disks')
    this.captures = join(this.root, 'captures')
    this.fences = join(this.root, 'fences')
    this.host = join(this.root, 'host.json')
    this.forwarderLog = join(this.root, 'forwarder.log')
  }

  fence(id: string): string {
    return join(this.fences, `${safeName(id)}.json`)
  }
  vm(id: string): string {
    return join(this.vms, safeName(id))
  }
  disk(id: string): string {
    return join(this.disks, safeName(id))
  }
  capture(id: string): string {
    return join(this.captures, safeName(id))
  }
}

/**
 * Returns the path of a socket on which QEMU listens. Once QEMU is listening, only the server can write to
 * the sockets' folder.
 */
export function vmSocket(vmDir: string, name: 'qmp' | 'serial' | 'access' | 'segment' | 'agent'): string {
  return join(vmDir, 'sockets', `${name}.sock`)
}

/** Ids become file names, so an id that could point outside its folder is rejected. */
function safeName(id: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id)) throw new RangeError(`invalid id: ${id}`)
  return id
}
