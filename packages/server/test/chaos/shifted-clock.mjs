// Preloaded by a process whose clock is to be wrong. Shifts the dates of JavaScript, but not those of the database.
const shiftMs = Number(process.env.CHAOS_CLOCK_SHIFT_MS)
const RealDate = Date

globalThis.Date = class extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(RealDate.now() + shiftMs)
    else super(...given)
  }

  static now() {
    return RealDate.now() + shiftMs
  }
}
