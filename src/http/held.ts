/** A request whose answer waits while no database server writes. */
import { HELD_MS } from "../limits/connections.ts";
import type { Journal, Ports, WaitEnd } from "../ports.ts";
import { StoreUnavailable } from "../ports.ts";
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
  let records = 0;
  let until: WaitEnd | undefined;
  const journal: Journal = {
    record(entry, deadline) {
      records++;
      return ports.journal.record(entry, deadline, true);
    },
  };
  const own = { ...ports, journal };
  const answerOrWait = (): Promise<HttpResponse> =>
    answer(own).catch(async (fault) => {
      // Where a second record found no server, the first one is in the store.
      if (records > 1 || !(fault instanceof StoreUnavailable && fault.noWriter)) throw fault;
      records = 0;
      until ??= { deadline: peer.deadline, gone: peer.gone };
      const isOver = await ports.outage.wait(bytes(), endMs, until);
      until.gone?.throwIfAborted();
      if (!isOver) throw fault;
      return answerOrWait();
    });
  return answerOrWait();
}
