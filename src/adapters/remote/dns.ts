/**
 * Resolves host names of URLs supplied by clients by direct DNS queries. The platform's own look-up would block one of
 * a few threads for as long as a hostile name server does not answer, and delay every other look-up of this process.
 */
import { Resolver as Queries } from "node:dns/promises";
import type { Resolver } from "./checked-agent.ts";

/** The second attempt takes twice as long and is still within the deadline of a fetch. */
const QUERY_TIMEOUT_MS = 1_000;

/** Finds all IPv4 and IPv6 addresses that arrive in time, from the given name servers or those of the system. */
export function queryNames(servers?: readonly string[], timeoutMs = QUERY_TIMEOUT_MS): Resolver {
  return async (hostname) => {
    // The resolver is made for each query, because the system's name servers may have changed.
    const queries = new Queries({ timeout: timeoutMs, tries: 2 });
    if (servers !== undefined) queries.setServers(servers);
    const [four, six] = await Promise.allSettled([queries.resolve4(hostname), queries.resolve6(hostname)]);
    return [...answersOf(four, 4), ...answersOf(six, 6)];
  };
}

const answersOf = (answer: PromiseSettledResult<string[]>, family: number) =>
  answer.status === "rejected" ? [] : answer.value.map((address) => ({ address, family }));
