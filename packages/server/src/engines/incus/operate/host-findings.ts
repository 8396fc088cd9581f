import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { scanGpus } from '../../sysfs-gpus.ts'
import { type Finding, ok, problem } from './finding.ts'

/** The folders from which the state of a host's kernel is read. Tests use a recorded state. */
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

/** Checks what a host needs in addition to Incus. A host whose guests are containers needs less. */
export async function hostFindings(host: HostFiles, isForVms: boolean): Promise<Finding[]> {
  const seedWriter = () =>
    programFinding(host, 'mkisofs', 'genisoimage', 'writes the configuration of guests')
  return [
    ...(isForVms ? [...(await gpuFindings(host)), seedWriter()] : []),
    await bridgeFiltering(host),
    programFinding(host, 'dnsmasq', 'dnsmasq-base', 'assigns addresses to guests'),
    programFinding(host, 'nft', 'nftables', 'applies the firewall'),
  ]
}

async function gpuFindings({ sys }: HostFiles): Promise<Finding[]> {
  const groups = await readdir(join(sys, 'kernel/iommu_groups')).catch(() => [])
  const iommu =
    groups.length > 0
      ? ok('IOMMU', `on, with ${groups.length} groups`)
      : problem(
          'IOMMU',
          'off, so no device can be passed to a guest',
          'enable VT-d or AMD-Vi in the firmware',
          'in /etc/default/grub add intel_iommu=on iommu=pt to GRUB_CMDLINE_LINUX_DEFAULT; then update-grub and reboot',
        )
  const gpus = (await scanGpus(sys)).filter(({ isInCatalogue }) => isInCatalogue)
  if (gpus.length === 0)
    return [
      iommu,
      problem(
        'GPUs',
        'no GPU from the catalogue on the PCI bus',
        'lspci -nn -d 10de: lists the NVIDIA devices',
      ),
    ]
  const found = ok('GPUs', gpus.map(({ pciAddress, model }) => `${pciAddress} ${model}`).join(', '))
  const unusable = gpus.filter((gpu) => gpu.problem !== '')
  const vfio =
    unusable.length === 0
      ? ok('vfio-pci', 'bound to every GPU')
      : problem(
          'vfio-pci',
          unusable.map((gpu) => `${gpu.pciAddress}: ${gpu.problem}`).join('; '),
          'echo vfio-pci > /etc/modules-load.d/vfio-pci.conf',
          'echo "options vfio-pci ids=VENDOR:DEVICE" > /etc/modprobe.d/vfio-pci.conf  (lspci -nn -d 10de: shows the ids)',
          'echo "softdep nouveau pre: vfio-pci" >> /etc/modprobe.d/vfio-pci.conf; update-initramfs -u; reboot',
        )
  return [iommu, found, vfio]
}

async function bridgeFiltering({ proc }: HostFiles): Promise<Finding> {
  const value = (await readFile(join(proc, filteringSetting), 'utf8').catch(() => '')).trim()
  if (value === '1')
    return ok('bridge filtering', 'on: traffic between guests of one bridge passes through the firewall')
  return problem(
    'bridge filtering',
    value === '' ? 'the kernel module br_netfilter is not loaded' : 'net.bridge.bridge-nf-call-iptables is 0',
    'slipway-server incus init (or join) loads the module and enables filtering now and at every boot',
  )
}

function programFinding(host: HostFiles, program: string, debianPackage: string, purpose: string): Finding {
  return host.programs.some((folder) => existsSync(join(folder, program)))
    ? ok(program, purpose)
    : problem(program, 'not installed', `apt-get install ${debianPackage}`)
}
