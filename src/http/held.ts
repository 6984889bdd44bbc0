/** A request whose answer waits while no database server writes. */
import { HELD_MS } from "../limits/connections.ts";
import { type Journal, type Ports, StoreUnavailable, type WaitEnd } from "../ports.ts";
import type { HttpResponse, Peer } from "./handler.ts";

/**
 * STORE-D-21: a client that is told 503 may ask its user to sign in again, so the request is done anew once a server
 * writes. Only one of which it is certain that nothing of it is in the store: what was used up once would be used up twice.
 */
export function answerWithWriter<P extends Pick<Ports, "journal" | "outage">>(
  ports: P,
  bytes: () => number,
  peer: Peer,
  answer: (ports: P) => Promise<HttpResponse>,
): Promise<HttpResponse> {
  const endMs = performance.now() + HELD_MS;
  const records: ReturnType<Journal["record"]>[] = [];
  let until: WaitEnd | undefined;
  const journal: Journal = {
    record(entry, deadline) {
      const recorded = ports.journal.record(entry, deadline, true);
      records.push(recorded);
      return recorded;
    },
  };
  const own = { ...ports, journal };
  const answerOrWait = (): Promise<HttpResponse> =>
    answer(own).catch(async (fault) => {
      if (!(fault instanceof StoreUnavailable && fault.noWriter) || (await isWritten(records))) throw fault;
      until ??= { deadline: peer.deadline, gone: peer.gone };
      const isOver = await ports.outage.wait(bytes(), endMs, until);
      until.gone?.throwIfAborted();
      if (!isOver) throw fault;
      return answerOrWait();
    });
  return answerOrWait();
}

/** Asked of a request that failed alone, since only the outcome of each record tells it. */
async function isWritten(records: readonly ReturnType<Journal["record"]>[]): Promise<boolean> {
  const outcomes = await Promise.allSettled(records);
  return outcomes.some((one) => one.status === "fulfilled" && one.value.ok);
}
