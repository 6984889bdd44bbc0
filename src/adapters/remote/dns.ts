/**
 * Names that strangers make up, asked of the Domain Name System directly. The platform's own look-up holds one of a
 * few threads for as long as the servers of such a name please, and whatever else here looks up a name would wait.
 */
import { Resolver as Queries } from "node:dns/promises";
import type { Resolver } from "./fetch.ts";

/** A second attempt waits for twice as long, and is still within the deadline of a fetch. */
const QUERY_TIMEOUT_MS = 1_000;

/** Every address of either family that came in time; the servers are those of the system if none are named. */
export function queryNames(servers?: readonly string[], timeoutMs = QUERY_TIMEOUT_MS): Resolver {
  return async (hostname) => {
    // Anew each time, for the system may have other servers by now.
    const queries = new Queries({ timeout: timeoutMs, tries: 2 });
    if (servers !== undefined) queries.setServers(servers);
    const [four, six] = await Promise.allSettled([queries.resolve4(hostname), queries.resolve6(hostname)]);
    return [...answersOf(four, 4), ...answersOf(six, 6)];
  };
}

const answersOf = (answer: PromiseSettledResult<string[]>, family: number) =>
  answer.status === "rejected" ? [] : answer.value.map((address) => ({ address, family }));
