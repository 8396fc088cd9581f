import { run } from '../qemu/command.ts'
import { agentReportOf } from './agent/guest-network.ts'
import type { IncusContext } from './context.ts'
import type { Member } from './fleet/members.ts'

/** The commands that Incus runs to limit a network interface. Each needs a kernel module. */
const commands = [
  'ip link add card type bridge',
  'tc qdisc add dev card root handle 1:0 htb default 10',
  'tc qdisc add dev card handle ffff:0 ingress',
  'tc filter add dev card parent ffff:0 protocol all u32 match u32 0 0 police rate 1gbit burst 1024k mtu 64kb drop',
]

/**
 * Tests in a separate network namespace whether this machine's kernel can limit a network interface. Needs
 * root.
 */
export const canLimitNetwork = (): Promise<boolean> =>
  run('unshare', ['--net', 'sh', '-c', commands.join(' && ')]).then(
    () => true,
    () => false,
  )

/** Records on a member whether its kernel can limit network interfaces. An agent's report overrides this. */
export const limitsMark = 'user.slipway.limits-network'

export const limitsAdvice =
  'load the kernel modules sch_htb, sch_ingress, cls_u32 and act_police on this member, then run slipway-server incus init (or join) there again; or set network_limits = false in [location.incus]'

/**
 * Returns true if VMs of this location cannot start on the member because the location limits network
 * interfaces and the member's kernel cannot. A member that was never checked is assumed to be able to limit
 * them.
 */
export function lacksLimits(
  { config }: IncusContext,
  member: Pick<Member, 'config'>,
  hasOvn: boolean,
): boolean {
  if (!config.networkLimits || hasOvn) return false
  const isAble = agentReportOf(member.config)?.limitsNetwork ?? member.config[limitsMark] !== 'false'
  return !isAble
}
