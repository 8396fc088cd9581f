import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scanGpus } from '../../qemu/gpu/sysfs.ts'
import { type Finding, missing, ok } from './finding.ts'

/** Where the kernel of a host is asked; tests ask a recorded one. */
export interface HostFiles {
  sys: string
  proc: string
  programs: string[]
}

export const thisHost: HostFiles = {
  sys: '/sys',
  proc: '/proc',
  programs: ['/usr/sbin', '/usr/bin', '/sbin', '/bin'],
}

export const filteringSetting = 'sys/net/bridge/bridge-nf-call-iptables'

/** What a host needs before Incus is asked anything; less of it where guests are not virtual machines. */
export async function hostFindings(host: HostFiles, isForVms: boolean): Promise<Finding[]> {
  const seedWriter = () => programFinding(host, 'mkisofs', 'genisoimage', 'writes what guests are told')
  return [
    ...(isForVms ? [...(await gpuFindings(host)), seedWriter()] : []),
    await bridgeFiltering(host),
    programFinding(host, 'dnsmasq', 'dnsmasq-base', 'gives guests their addresses'),
    programFinding(host, 'nft', 'nftables', 'is the firewall'),
  ]
}

async function gpuFindings({ sys }: HostFiles): Promise<Finding[]> {
  const groups = await readdir(join(sys, 'kernel/iommu_groups')).catch(() => [])
  const iommu =
    groups.length > 0
      ? ok('IOMMU', `on, with ${groups.length} groups`)
      : missing(
          'IOMMU',
          'off: no device can be given to a guest',
          'switch VT-d or AMD-Vi on in the firmware',
          'in /etc/default/grub add intel_iommu=on iommu=pt to GRUB_CMDLINE_LINUX_DEFAULT; then update-grub and reboot',
        )
  const gpus = (await scanGpus(sys)).filter(({ isInCatalogue }) => isInCatalogue)
  if (gpus.length === 0)
    return [
      iommu,
      missing('GPUs', 'none of the catalogue on the PCI bus', 'lspci -nn -d 10de: shows what is there'),
    ]
  const found = ok('GPUs', gpus.map(({ pciAddress, model }) => `${pciAddress} ${model}`).join(', '))
  const held = gpus.filter(({ problem }) => problem !== '')
  const vfio =
    held.length === 0
      ? ok('vfio-pci', 'has every GPU')
      : missing(
          'vfio-pci',
          held.map(({ pciAddress, problem }) => `${pciAddress}: ${problem}`).join('; '),
          'echo vfio-pci > /etc/modules-load.d/vfio-pci.conf',
          'echo "options vfio-pci ids=VENDOR:DEVICE" > /etc/modprobe.d/vfio-pci.conf  (ids by lspci -nn -d 10de:)',
          'echo "softdep nouveau pre: vfio-pci" >> /etc/modprobe.d/vfio-pci.conf; update-initramfs -u; reboot',
        )
  return [iommu, found, vfio]
}

async function bridgeFiltering({ proc }: HostFiles): Promise<Finding> {
  const value = (await readFile(join(proc, filteringSetting), 'utf8').catch(() => '')).trim()
  if (value === '1')
    return ok('bridge filtering', 'traffic between guests of one bridge goes through the firewall')
  return missing(
    'bridge filtering',
    value === '' ? 'the kernel module br_netfilter is not loaded' : 'net.bridge.bridge-nf-call-iptables is 0',
    'slipway-server incus init (or join) loads the module, and sets it now and at every boot',
  )
}

function programFinding(host: HostFiles, program: string, debianPackage: string, purpose: string): Finding {
  return host.programs.some((folder) => existsSync(join(folder, program)))
    ? ok(program, purpose)
    : missing(program, 'not installed', `apt-get install ${debianPackage}`)
}
