/** The scope and duration of the measurements. */
export interface Effort {
  hosts: number
  /** The number of VMs from which single records are read at random. */
  vms: number
  /** The number of rounds that count, after one warm-up round. If it is 0, the warm-up round counts. */
  rounds: number
  /** The duration of each round. A read and its baselines alternate in shorter intervals. */
  readSeconds: number
  connections: number[]
  /** The number of creations by one client. */
  samples: number
  changeSeconds: number
  /** The number of instance groups, which are created one after another. */
  groups: number
  /**
   * The number of creations before several processes are measured. A new process compiles its code during its
   * first few thousand creations.
   */
  firstCreations: number
  streamSeconds: number
  starts: number
}

export const usual: Effort = {
  hosts: 3_000,
  vms: 10_000,
  rounds: 3,
  readSeconds: 3,
  connections: [1, 16, 64],
  samples: 200,
  changeSeconds: 10,
  groups: 15,
  firstCreations: 1_500,
  streamSeconds: 10,
  starts: 5,
}

/** A short run of about a minute. */
export const quick: Effort = {
  hosts: 3_000,
  vms: 10_000,
  rounds: 0,
  readSeconds: 1,
  connections: [1, 16, 64],
  samples: 60,
  changeSeconds: 3,
  groups: 5,
  firstCreations: 100,
  streamSeconds: 4,
  starts: 1,
}
