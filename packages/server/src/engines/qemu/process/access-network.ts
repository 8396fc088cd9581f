/** Between one guest and the forwarder only; its range is one that no tenant network can have. */
export const accessNetwork = {
  cidr: '100.127.255.0/24',
  /** The forwarder's end: connections from outside come from here, and its port 53 answers where egress is on. */
  host: '100.127.255.2',
  dns: '100.127.255.3',
  guest: '100.127.255.15',
  prefix: 24,
}
