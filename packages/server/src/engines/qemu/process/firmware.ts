import { access } from 'node:fs/promises'
import type { Architecture } from '../architecture.ts'

export interface Firmware {
  code: string
  /** Template of the variable store; each VM gets a copy. */
  variables: string
}

const CANDIDATES: Record<Architecture['name'], Firmware[]> = {
  x86_64: [
    { code: '/usr/share/OVMF/OVMF_CODE_4M.fd', variables: '/usr/share/OVMF/OVMF_VARS_4M.fd' },
    { code: '/usr/share/OVMF/OVMF_CODE.fd', variables: '/usr/share/OVMF/OVMF_VARS.fd' },
    { code: '/usr/share/edk2/ovmf/OVMF_CODE.fd', variables: '/usr/share/edk2/ovmf/OVMF_VARS.fd' },
  ],
  aarch64: [
    { code: '/usr/share/AAVMF/AAVMF_CODE.fd', variables: '/usr/share/AAVMF/AAVMF_VARS.fd' },
    {
      code: '/usr/share/edk2/aarch64/QEMU_EFI-pflash.raw',
      variables: '/usr/share/edk2/aarch64/vars-template-pflash.raw',
    },
  ],
}

/** UEFI of this machine, if its package is installed (ovmf, or qemu-efi-aarch64). */
export async function findFirmware(arch: Architecture): Promise<Firmware | null> {
  for (const firmware of CANDIDATES[arch.name]) {
    const isThere = await access(firmware.code)
      .then(() => access(firmware.variables))
      .then(
        () => true,
        () => false,
      )
    if (isThere) return firmware
  }
  return null
}
