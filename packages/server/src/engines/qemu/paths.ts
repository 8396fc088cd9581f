import { join, resolve } from 'node:path'

/** Shared by every location of a data directory. Absolute: QEMU takes a relative backing file to be beside its image. */
export function imagesDir(dataDir: string): string {
  return resolve(dataDir, 'qemu', 'images')
}

/** Where one location's engine keeps its things; the folder is closed to other users. */
export class StatePaths {
  readonly root: string

  constructor(dataDir: string, location: string) {
    this.root = resolve(dataDir, 'qemu', location)
  }

  get vms(): string {
    return join(this.root, 'vms')
  }
  get disks(): string {
    return join(this.root, 'disks')
  }
  get fences(): string {
    return join(this.root, 'fences')
  }
  get host(): string {
    return join(this.root, 'host.json')
  }
  get forwarderLog(): string {
    return join(this.root, 'forwarder.log')
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
}

/** QEMU listens here; the folder is the server's alone once it does. */
export function vmSocket(vmDir: string, name: 'qmp' | 'access' | 'segment'): string {
  return join(vmDir, 'sockets', `${name}.sock`)
}

/** Ids become file names; anything that could climb out of its folder is refused. */
export function safeName(id: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id)) throw new RangeError(`not usable as an id: ${id}`)
  return id
}
