import type { Architecture } from '../architecture.ts'
import { isAccessible } from '../files.ts'

export interface Firmware {
  code: string
  /** Template of the variable store; each VM gets a copy. */
  variables: string
}

const candidates: Record<Architecture['name'], Firmware[]> = {
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

/** The UEFI firmware of this machine, if its package is installed (ovmf or qemu-efi-aarch64). */
export async function findFirmware(arch: Architecture): Promise<Firmware | null> {
  for (const firmware of candidates[arch.name])
    if ((await isAccessible(firmware.code)) && (await isAccessible(firmware.variables))) return firmware
  return null
}
