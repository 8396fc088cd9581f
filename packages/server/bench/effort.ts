/** How long the measurements take. */
export interface Effort {
  /** Rounds in which a read and its limits take turns, after one that warms up; none: the warm-up is what counts. */
  rounds: number
  readSeconds: number
  connections: number[]
  /** Creations by one client. */
  samples: number
  changeSeconds: number
  streamSeconds: number
}

export const usual: Effort = {
  rounds: 3,
  readSeconds: 2,
  connections: [1, 16, 64],
  samples: 200,
  changeSeconds: 10,
  streamSeconds: 10,
}

/** A look in a minute. */
export const quick: Effort = {
  rounds: 0,
  readSeconds: 1,
  connections: [1, 16, 64],
  samples: 60,
  changeSeconds: 4,
  streamSeconds: 4,
}
