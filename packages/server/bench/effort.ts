/** How long the measurements take. */
export interface Effort {
  hosts: number
  /** VMs that single records are read of, at random. */
  vms: number
  /** Rounds that are counted, after one that warms up; none: the warm-up is what counts. */
  rounds: number
  /** For each round; a read and its limits take turns in shorter ones. */
  readSeconds: number
  connections: number[]
  /** Creations by one client. */
  samples: number
  changeSeconds: number
  /** Instance groups that are created one after another. */
  groups: number
  /** Creations that each of several processes makes before it is measured: a new one compiles for some thousand. */
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

/** A look in a minute. */
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
