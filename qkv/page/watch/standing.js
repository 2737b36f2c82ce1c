/** Where a run stands, in a sentence. */

const standings = {
  preparing: () => ["Its text is being prepared; training begins after that."],
  training: (told, last) => [
    last ? `Step ${reached(told, last)}` : "Training begins; nothing is reported yet",
    last && told.seconds_left !== null && `about ${spoken(told.seconds_left)} left`,
    told.seconds_since !== null && `last report ${spoken(told.seconds_since)} ago`,
  ],
  stopped: (told, last) => [
    last ? `Stopped at step ${reached(told, last)}` : "Nothing is reported yet",
    // Who was killed has not said why.
    told.why_stopped ?? "no process is training it now; the command that began it goes on",
  ],
  finished: (told, last) => [`Finished at step ${reached(told, last)}`],
};

export const lastStep = ({train, validation}) => Math.max(0, ...[...train, ...validation].map(({step}) => step));

export function standing(told) {
  return standings[told.standing](told, lastStep(told)).filter(Boolean).join(" · ");
}

/** A run that went wrong and goes on from before. */
export function wentBack({step, from_step, rate_factor, reason}) {
  const numbers = [from_step, step].map((number) => number.toLocaleString("en"));
  return `Went back from step ${numbers[0]} to ${numbers[1]}, with ${rate_factor} of the learning rate: ${reason}.`;
}

const reached = ({steps}, last) => `${last.toLocaleString("en")} of ${steps.toLocaleString("en")}`;

function spoken(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
