/** Requests that met no database server which writes, held until there is one, within bounds (STORE-D-21). */
import {
  HELD_BYTES_MAX,
  HELD_LOOK_MS,
  HELD_OUTAGE_MS_MAX,
  HELD_REQUESTS_MAX,
} from "../../limits/connections.ts";
import type { Outage, WaitEnd } from "../../ports.ts";

type Held = { bytes: number; end(isOver: boolean): void };

export class OutageWatch implements Outage {
  readonly #storeAnswers: () => Promise<boolean>;
  readonly #isInDoubt: () => boolean;
  readonly #held = new Set<Held>();
  #bytes = 0;
  #beganMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `isInDoubt`: whether writes wait for a look too. */
  constructor(storeAnswers: () => Promise<boolean>, isInDoubt: () => boolean) {
    this.#storeAnswers = storeAnswers;
    this.#isInDoubt = isInDoubt;
  }

  wait(bytes: number, endMs: number, { deadline, gone }: WaitEnd): Promise<boolean> {
    const nowMs = performance.now();
    this.#beganMs ??= nowMs;
    const hasPlace = this.#held.size < HELD_REQUESTS_MAX && this.#bytes + bytes <= HELD_BYTES_MAX;
    // Of an outage that lasts, requests would only pile up.
    if (!hasPlace || nowMs >= endMs || nowMs - this.#beganMs > HELD_OUTAGE_MS_MAX)
      return Promise.resolve(false);
    return new Promise((resolve) => {
      const timer = setTimeout(() => held.end(false), endMs - nowMs);
      const leave = (): void => held.end(false);
      const held: Held = {
        bytes,
        end: (isOver) => {
          if (!this.#held.delete(held)) return;
          this.#bytes -= bytes;
          clearTimeout(timer);
          for (const signal of [deadline, gone]) signal?.removeEventListener("abort", leave);
          resolve(isOver);
        },
      };
      for (const signal of [deadline, gone]) signal?.addEventListener("abort", leave);
      this.#held.add(held);
      this.#bytes += bytes;
      if (deadline.aborted || gone?.aborted === true) leave();
      this.watch();
    });
  }

  /** Looks until the store writes again, for as long as requests are held, here or in doubt. */
  watch(): void {
    this.#timer ??= setTimeout(async () => {
      const answers = await this.#storeAnswers();
      this.#timer = undefined;
      if (answers) this.over();
      else if (this.#held.size > 0 || this.#isInDoubt()) this.watch();
    }, HELD_LOOK_MS);
    this.#timer.unref();
  }

  /** The store writes. */
  over(): void {
    this.#beganMs = undefined;
    for (const { end } of this.#held) end(true);
  }
}
