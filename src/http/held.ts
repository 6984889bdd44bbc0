/** A request whose answer waits while no database server writes. */
import { HELD_MS } from "../limits/connections.ts";
import type { Journal, Ports, WaitEnd } from "../ports.ts";
import { StoreUnavailable } from "../ports.ts";
import type { HttpResponse, Peer } from "./handler.ts";

/**
 * STORE-D-21: a client that is told 503 may ask its user to sign in again, so the request is done anew once a server
 * writes. Only one of which it is certain that nothing of it is in the store: what was used up once would be used up twice.
 */
export async function answerWithWriter<P extends Pick<Ports, "journal" | "outage">>(
  ports: P,
  bytes: number,
  peer: Peer,
  answer: (ports: P) => Promise<HttpResponse>,
): Promise<HttpResponse> {
  let until: WaitEnd | undefined;
  const endMs = performance.now() + HELD_MS;
  let wrote = false;
  const journal: Journal = {
    async record(entry, deadline) {
      const recorded = await ports.journal.record(entry, deadline, true);
      wrote ||= recorded.ok;
      return recorded;
    },
  };
  for (;;) {
    try {
      return await answer({ ...ports, journal });
    } catch (fault) {
      if (wrote || !(fault instanceof StoreUnavailable && fault.noWriter)) throw fault;
      until ??= { deadline: peer.deadline, gone: peer.gone };
      const isOver = await ports.outage.wait(bytes, endMs, until);
      until.gone?.throwIfAborted();
      if (!isOver) throw fault;
    }
  }
}
