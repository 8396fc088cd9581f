import { existsSync } from 'node:fs'
import { whyNoIncus } from '../incus-bench.ts'

/** The reason why no virtual machine can be started here, shown with skipped tests; '' if one can. */
export const whyNoVms = findObstacle()

function findObstacle(): string {
  if (whyNoIncus) return whyNoIncus
  if (process.arch !== 'x64') return '(tested only on x86_64)'
  for (const device of ['/dev/kvm', '/dev/vsock'])
    if (!existsSync(device)) return `(Incus has no virtual machines without ${device})`
  return ''
}

/**
 * Incus requires vhost_vsock to talk to an agent in the guest, but our guests have no agent. If the kernel does not
 * have it, these replacements satisfy the checks of the daemon at its start: a `modprobe` that succeeds, a device that
 * can be opened, and a socket on standard input that is returned whenever a vsock socket is created. Binding it,
 * listening on it and assigning an id to a guest succeed without effect, and no client ever connects. Only the daemon
 * and its child processes see these replacements.
 */
const standIn = String.raw`
mkdir -p "$1.vsock/bin" "$1.vsock/upper" "$1.vsock/work"
mount -t overlay overlay -o "lowerdir=/dev,upperdir=$1.vsock/upper,workdir=$1.vsock/work" /dev
ln -sf null /dev/vhost-vsock
printf '#!/bin/sh\n' >"$1.vsock/bin/modprobe"
chmod 755 "$1.vsock/bin/modprobe"
export PATH="$1.vsock/bin:$PATH"
cat >"$1.vsock/launch" <<'END'
use strict;
my ($vsock, $stream, $any) = (40, 1, 0xffffffff);
my ($ioctl, $socket, $bind, $listen, $accept, $setrlimit, $prctl) = (16, 41, 49, 50, 288, 160, 157);
my ($set_guest_cid, $memlock, $again, $succeed, $allow) = (0x4008af60, 8, 11, 0x50000, 0x7fff0000);
socket(my $unheard, $vsock, $stream, 0) or die "no vsock: $!";
bind($unheard, pack 'S S L L x4', $vsock, 0, $any, $any) or die "no port of vsock: $!";
open(STDIN, '<&', $unheard) or die "no standard input: $!";
# Each rule checks one argument of one system call, and returns a result instead of the kernel.
my @rules = map {
  my ($call, $argument, $value, $answer) = @$_;
  [0x20, 0, 0, 0], [0x15, 0, 3, $call], [0x20, 0, 0, 16 + 8 * $argument], [0x15, 0, 1, $value], [0x06, 0, 0, $answer]
} ([$ioctl, 1, $set_guest_cid, $succeed], [$socket, 0, $vsock, $succeed], [$bind, 0, 0, $succeed],
   [$listen, 0, 0, $succeed], [$accept, 0, 0, $succeed | $again], [$setrlimit, 0, $memlock, $succeed]);
my $filter = join '', map { pack 'S C C L', @$_ } @rules, [0x06, 0, 0, $allow];
syscall($prctl, 22, 2, pack('S x6 P', @rules + 1, $filter), 0, 0) == 0 or die "no filter: $!";
exec @ARGV;
END
launcher="perl $1.vsock/launch"
`

export const vmPrelude = existsSync('/dev/vhost-vsock') ? '' : standIn
