/** What this server sends to by HTTPS: receivers of security events, the sink of checkpoints, the key service. */
import { fetchDocument } from "../../adapters/remote/fetch.ts";
import { FetchFailed } from "../../adapters/remote/fetch-failed.ts";
import type { Config } from "../../config/config.ts";
import { SIGNAL_ANSWER_BYTES_MAX } from "../../limits/signals.ts";
import type { RemoteDocument } from "../../settings/settings.ts";
import type { Finding } from "./finding.ts";

/** What of it only a message would show. */
const UNSEEN = {
  stream: "whether it takes events is not checked",
  sink: "whether it takes checkpoints is not checked",
  service: "whether it makes keys and signs is not checked",
};

export function receiversOf({ fixed, settings }: Config): Promise<readonly Finding[]> {
  const streams = [...settings.streams.values()].map(({ name, endpoint }) =>
    receiverOf(`signals.streams.${name}`, endpoint, UNSEEN.stream),
  );
  const { witness } = fixed.audit;
  const sinks =
    typeof witness === "object" && "sink" in witness
      ? [receiverOf("audit.witness", witness.sink, UNSEEN.sink)]
      : [];
  const place = fixed.keys.service?.service;
  const services =
    place === undefined ? [] : [receiverOf("keys.service", place, UNSEEN.service, [NOT_FOUND])];
  return Promise.all([...streams, ...sinks, ...services]);
}

const NOT_FOUND = 404;
const GONE = 410;

/** A GET delivers nothing, and shows whether network, certificate and path are right; most receivers refuse it. */
async function receiverOf(
  where: string,
  place: RemoteDocument,
  unseen: string,
  usual: readonly number[] = [],
): Promise<Finding> {
  try {
    await fetchDocument(place, SIGNAL_ANSWER_BYTES_MAX);
  } catch (fault) {
    if (!(fault instanceof FetchFailed)) throw fault;
    const { status, message } = fault;
    // A response that is no document is a response all the same.
    const answered = status !== undefined || ANSWERED.includes(fault.reason);
    if (!answered) {
      const says = `cannot be reached (${message}): correct the URL, its ca or its privateNetworks`;
      return { level: "unreachable", where, says };
    }
    if ((status === NOT_FOUND || status === GONE) && !usual.includes(status)) {
      const says = `answers, but with status ${status} to GET: look at the path of its URL, unless it knows POST alone; ${unseen}`;
      return { level: "warning", where, says };
    }
  }
  return { level: "ok", where, says: `answers; ${unseen}` };
}

const ANSWERED: readonly string[] = ["redirected", "encoded", "too_large", "not_utf8"];
