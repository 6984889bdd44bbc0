/** Keys of clients that named the URL of their key set themselves, in a registration or a metadata document. */

import { CLIENT_LAST_GOOD_SECONDS, KEY_SET_BYTES_MAX } from "../../limits.ts";
import type { FetchedKeys } from "../../ports.ts";
import { err } from "../../result.ts";
import { narrowKeys } from "../../settings/client.ts";
import { parseJwkSet, selectKey } from "../../spec/rfc7517.ts";
import type { FetchContext } from "./cached-document.ts";
import { makeDocumentCache } from "./cached-document.ts";
import { KEY_SET_TYPE } from "./key-sources.ts";

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
    async key(where, header, source) {
      const set = await sets.get(where, source);
      if (!set.ok) return set;
      const known = selectKey(narrowKeys(set.value, where.algorithm), header);
      if (known.ok) return known;
      if (known.error.kind !== "key_unknown") return err({ reason: known.error.kind });
      // RFC8725-3.10-v1: an unknown `kid` causes at most one early fetch, shared by all requests.
      const newer = await sets.lookAgain(where, source);
      if (!newer.ok) return newer;
      const found = selectKey(narrowKeys(newer.value, where.algorithm), header);
      return found.ok ? found : err({ reason: found.error.kind });
    },
  };
}
