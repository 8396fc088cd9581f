/** The network between one guest and the forwarder. No tenant network can use its range. */
export const accessNetwork = {
  /** The forwarder's address, from which outside connections reach the guest. */
  host: '100.127.255.2',
  dns: '100.127.255.3',
  guest: '100.127.255.15',
  prefix: 24,
}
