/** Keys of clients that named the URL of their key set themselves, in a registration or a metadata document. */

import { CLIENT_LAST_GOOD_SECONDS, KEY_SET_BYTES_MAX } from "../../limits/fetching.ts";
import type { FetchedKeys, FetchRefused } from "../../ports.ts";
import { err } from "../../result.ts";
import { narrowKeys } from "../../settings/client.ts";
import { parseJwkSet, selectKey } from "../../spec/rfc7517.ts";
import { type FetchContext, makeDocumentCache } from "./cached-document.ts";
import { KEY_SET_TYPE } from "./key-sets.ts";

export function openFetchedKeys(context: FetchContext): FetchedKeys {
  const sets = makeDocumentCache(
    {
      name: "key_set",
      bytesMax: KEY_SET_BYTES_MAX,
      contentType: KEY_SET_TYPE,
      parse: (_url, text) => parseJwkSet(text),
      lastGoodSeconds: CLIENT_LAST_GOOD_SECONDS,
    },
    context,
  );
  return {
    async key(where, header, source, until) {
      let refused: FetchRefused = { reason: "key_unknown" };
      // RFC8725-3.10-v1: an unknown `kid` causes early looks at the key set.
      for await (const set of sets.copies(where, source, until)) {
        // MCPC-D-24: the client is known, and may come again when its keys can be fetched.
        if (!set.ok) return set.error.failed === "now" ? err({ ...set.error, unreachable: true }) : set;
        const found = selectKey(narrowKeys(set.value, where.algorithm), header);
        if (found.ok) return found;
        refused = { reason: found.error.kind };
        if (found.error.kind !== "key_unknown") break;
      }
      return err(refused);
    },
  };
}
