import { statement } from '../../postgres/statement.ts'

/** A clock step of at least this size raises an alert. Smaller corrections of clocks are normal. */
export const alertMs = 5_000

/** The service's time, before any shift by `--dev`, and the steps of PostgreSQL's clock. */
interface Observation {
  /** In milliseconds since 1970. */
  ms: number
  /**
   * The size of the step back that this statement recorded; 0 if it recorded none, because the step was smaller than
   * `alertMs` or another process recorded it.
   */
  wentBackMs: number
  /** Null if there was no step. */
  sinceStepMs: number | null
}

const real = 'clock_timestamp()'
const latestTime = `greatest(${real} + ahead, latest)`
const inMs = (interval: string) => `(extract(epoch FROM ${interval}) * 1000)::float8`
const isStepBack = `${real} + ahead < latest - interval '${alertMs} milliseconds'`

// If the clock went back, the service's time continues from the latest record, and then pauses for a tenth of each
// second until it agrees with the clock again. One process writes the record; the others wait for the row and
// then read the new record.
const record = statement<Observation>(
  'clock_record',
  `WITH recorded AS (
     UPDATE clock SET
       latest = ${latestTime},
       ahead = CASE WHEN ${real} + ahead < latest THEN latest - ${real}
                    ELSE greatest(ahead - least((${real} + ahead - latest) / 10, interval '200 milliseconds'), '0') END,
       stepped_at = CASE WHEN ${isStepBack} THEN latest ELSE stepped_at END,
       step = CASE WHEN ${isStepBack} THEN ${real} + ahead - latest ELSE step END
     WHERE latest NOT BETWEEN ${real} + ahead - interval '900 milliseconds' AND ${real} + ahead + interval '1 second'
     RETURNING stepped_at, step)
   SELECT ${inMs(latestTime)} AS ms,
          coalesce((SELECT ${inMs('-r.step')} FROM recorded r WHERE r.stepped_at IS DISTINCT FROM c.stepped_at), 0)
            AS "wentBackMs",
          ${inMs(`${latestTime} - stepped_at`)} AS "sinceStepMs"
   FROM clock c`,
)

// All processes notice the same step within seconds; the first one records it.
const recordForward = statement<{ step: unknown }, { ms: number }>(
  'clock_record_forward',
  `UPDATE clock SET stepped_at = ${latestTime}, step = :ms * interval '1 millisecond'
   WHERE stepped_at IS NULL OR step < '0' OR stepped_at < ${latestTime} - interval '1 minute'
   RETURNING step`,
)

export const recordTime = record.oneBy()
/** Returns whether this call is the first to record the step. */
export const recordForwardStep = recordForward.oneBy('ms')
