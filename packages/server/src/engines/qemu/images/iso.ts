/**
 * A flat ISO 9660 image for the NoCloud seed, so that no ISO tool has to be installed. Linux accepts names
 * such as `meta-data`, although the standard does not allow hyphens.
 */
const sectorBytes = 2048
const rootSector = 20

export function isoImage(volumeId: string, files: Record<string, string | Buffer>): Buffer {
  const root: Buffer[] = [
    directoryRecord(Buffer.from([0]), rootSector, sectorBytes, true),
    directoryRecord(Buffer.from([1]), rootSector, sectorBytes, true),
  ]
  const contents: Buffer[] = []
  let sector = rootSector + 1
  for (const name of Object.keys(files).sort()) {
    const content = Buffer.from(files[name]!)
    root.push(directoryRecord(Buffer.from(name), sector, content.length, false))
    contents.push(toSectors(content))
    sector += contents.at(-1)!.length / sectorBytes
  }
  const directory = Buffer.concat(root)
  if (directory.length > sectorBytes) throw new RangeError('too many files for a one-sector directory')

  return Buffer.concat([
    Buffer.alloc(16 * sectorBytes),
    primaryDescriptor(volumeId, sector),
    toSectors(Buffer.concat([Buffer.from([255]), Buffer.from('CD001'), Buffer.from([1])])),
    toSectors(pathTable('le')),
    toSectors(pathTable('be')),
    toSectors(directory),
    ...contents,
  ])
}

function primaryDescriptor(volumeId: string, sectors: number): Buffer {
  const block = Buffer.alloc(sectorBytes)
  block[0] = 1
  block.write('CD001', 1, 'ascii')
  block[6] = 1
  block.fill(0x20, 8, 72)
  block.write(volumeId, 40, 32, 'ascii')
  writeBoth32(block, 80, sectors)
  writeBoth16(block, 120, 1)
  writeBoth16(block, 124, 1)
  writeBoth16(block, 128, sectorBytes)
  writeBoth32(block, 132, pathTable('le').length)
  block.writeUInt32LE(18, 140)
  block.writeUInt32BE(19, 148)
  directoryRecord(Buffer.from([0]), rootSector, sectorBytes, true).copy(block, 156)
  block.fill(0x20, 190, 813)
  for (const offset of [813, 830, 847, 864]) block.fill(0x30, offset, offset + 16)
  block[881] = 1
  return block
}

function directoryRecord(name: Buffer, sector: number, size: number, isDirectory: boolean): Buffer {
  const length = 33 + name.length + (name.length % 2 === 0 ? 1 : 0)
  const record = Buffer.alloc(length)
  record[0] = length
  writeBoth32(record, 2, sector)
  writeBoth32(record, 10, size)
  Buffer.from([70, 1, 1, 0, 0, 0, 0]).copy(record, 18)
  record[25] = isDirectory ? 2 : 0
  writeBoth16(record, 28, 1)
  record[32] = name.length
  name.copy(record, 33)
  return record
}

/**
 * The only entry is the root directory: the length of its name, its sector, and the number of its parent,
 * which is the root itself.
 */
const pathTable = (order: 'le' | 'be') =>
  Buffer.from(
    order === 'le' ? [1, 0, rootSector, 0, 0, 0, 1, 0, 0, 0] : [1, 0, 0, 0, 0, rootSector, 0, 1, 0, 0],
  )

function writeBoth32(buffer: Buffer, offset: number, value: number): void {
  buffer.writeUInt32LE(value, offset)
  buffer.writeUInt32BE(value, offset + 4)
}

function writeBoth16(buffer: Buffer, offset: number, value: number): void {
  buffer.writeUInt16LE(value, offset)
  buffer.writeUInt16BE(value, offset + 2)
}

function toSectors(content: Buffer): Buffer {
  return Buffer.concat([content, Buffer.alloc((sectorBytes - (content.length % sectorBytes)) % sectorBytes)])
}
