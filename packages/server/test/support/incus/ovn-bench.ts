import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '@slipway/testing/root.ts'
import type { IncusEngine } from '../../../src/engines/incus/engine.ts'
import { hostArchitecture } from '../../../src/engines/qemu/architecture.ts'
import { DebianPackages } from '../../../src/engines/qemu/mini-guest/debian-packages.ts'
import { IncusBench } from '../incus-bench.ts'

const exec = promisify(execFile)
const cache = join(root, 'node_modules/.cache/slipway-ovn')
const packages = [
  ...['ovn-central', 'ovn-host', 'ovn-common', 'openvswitch-switch', 'openvswitch-common'],
  ...['libunbound8', 'libxdp1', 'libbpf1'],
]

/** Returns the folder of the OVN programs. They are only unpacked, so that none of them runs outside the bench. */
async function ovnPrograms(): Promise<string> {
  const arch = hostArchitecture()
  const target = join(cache, arch.debianName)
  if (existsSync(target)) return target
  const work = await mkdtemp(join(tmpdir(), 'slipway-ovn-'))
  try {
    const debian = new DebianPackages(work, arch.debianName)
    await debian.refreshListsIfMissing('ovn-central')
    await debian.unpack(packages, join(work, 'root'))
    await mkdir(cache, { recursive: true })
    await exec('cp', ['-a', join(work, 'root'), `${target}.${process.pid}`])
    await rename(`${target}.${process.pid}`, target)
    return target
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** The address and ports of the first member, which runs the databases of OVN. */
const central = { address: '198.51.100.1', northPort: 6641, southPort: 6642 }

/**
 * Runs Open vSwitch and OVN next to each daemon, in its namespaces. Packets are switched in user space
 * (`netdev`), because few test machines have the kernel module. The bridge of the uplink, which Incus would
 * create for the module, is therefore created before Incus asks for it, and has the name of the first
 * network. In user space, tunnels work only through a bridge of the same kind, so the members' tunnels end at
 * that bridge, too.
 */
const prelude = (programs: string) => `
export PATH=${programs}/usr/bin:${programs}/usr/sbin:${programs}/usr/lib/openvswitch-switch:$PATH
export LD_LIBRARY_PATH=$(echo ${programs}/usr/lib/*-linux-gnu) OVS_RUNDIR=/run/openvswitch OVN_RUNDIR=/run/ovn
export OVS_LOGDIR="$1" OVN_LOGDIR="$1" OVS_SYSCONFDIR="$1"
tunnelEnd=192.0.2.\${3##*.}
mkdir -p /run/openvswitch /run/ovn
mount -t tmpfs tmpfs /run/openvswitch; mount -t tmpfs tmpfs /run/ovn
serve() { ovsdb-tool create "$1" "$2"; ovsdb-server "$1" --remote=punix:$3 $4 --pidfile=$3.pid --unixctl=$3.ctl --detach; }
serve "$1/ovs.db" ${programs}/usr/share/openvswitch/vswitch.ovsschema /run/openvswitch/db.sock
if [ "$3" = ${central.address} ]; then
  serve "$1/nb.db" ${programs}/usr/share/ovn/ovn-nb.ovsschema /run/ovn/ovnnb_db.sock --remote=ptcp:${central.northPort}:$3
  serve "$1/sb.db" ${programs}/usr/share/ovn/ovn-sb.ovsschema /run/ovn/ovnsb_db.sock --remote=ptcp:${central.southPort}:$3
  ovn-nbctl init; ovn-sbctl init
  ovn-northd --pidfile --detach
fi
ovs-vsctl --no-wait init
ovs-vsctl --no-wait set open . external_ids:system-id=$2 \
  external_ids:ovn-remote=tcp:${central.address}:${central.southPort} external_ids:ovn-encap-type=geneve \
  external_ids:ovn-encap-ip=$tunnelEnd external_ids:ovn-bridge-datapath-type=netdev
ovs-vswitchd --pidfile --detach
ovs-vsctl add-br incusovn1 -- set bridge incusovn1 datapath_type=netdev
ip address add $tunnelEnd/24 dev incusovn1; ip link set incusovn1 up
ovn-controller --pidfile --detach
`

/** Two members with one OVN. The uplink and the public addresses are in the network of the bench's switch. */
export class OvnBench {
  readonly bench: IncusBench
  readonly engine: IncusEngine

  private constructor(bench: IncusBench, engine: IncusEngine) {
    this.bench = bench
    this.engine = engine
  }

  static async open(): Promise<OvnBench> {
    const bench = await IncusBench.cluster(2, prelude(await ovnPrograms()))
    try {
      const [first] = bench.members
      const north = `tcp:${central.address}:${central.northPort}`
      await first!.cli('config', 'set', 'network.ovn.northbound_connection', north)
      const create = ['network', 'create', 'uplink', '--type=physical']
      for (const member of bench.members) {
        await bench.addPort(member, 'up1')
        // There is no network card that computes checksums, so disable offloading.
        await withoutOffload([`--net=/run/netns/${member.namespace}`], 'up1')
        await first!.cli(...create, '--target', member.name, 'parent=up1')
      }
      await withoutOffload([`--net=/run/netns/${bench.client}`], 'up0')
      const settings = [
        ...['ipv4.gateway=198.51.100.100/24', 'dns.nameservers=198.51.100.100'],
        ...['ipv4.ovn.ranges=198.51.100.150-198.51.100.199', 'ipv4.routes=198.51.100.208/28'],
      ]
      await first!.cli(...create, ...settings)
      const answersSsh = async (address: string, port: number) => {
        for (const path of await first!.instances()) {
          const name = /\/instances\/([^?]+)/.exec(path)![1]!
          const pid = await first!.pidOf(name).catch(() => 0)
          if (pid > 0) await withoutOffload(['-t', String(pid), '-n'], 'eth0').catch(() => {})
        }
        return bench.answersSsh(address, port)
      }
      return new OvnBench(bench, await bench.engine(bench.config(), { answersSsh }))
    } catch (error) {
      await bench.close()
      throw error
    }
  }

  async close(): Promise<void> {
    await this.engine.close()
    await this.bench.close()
  }
}

const withoutOffload = (namespace: string[], device: string) =>
  exec('nsenter', [...namespace, 'ethtool', '-K', device, 'tx', 'off'])
