/**
 * Trust bundles of SPIFFE trust domains, from a file, from a URL or from a bundle endpoint that proves itself by SPIFFE.
 * SPIFFE Federation: https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE_Federation.md, state of 1 July 2026
 * Covers 4 retrieval, 5.2.1 https_web, 5.2.2 https_spiffe.
 */
import { FETCHED_SECONDS_MIN, KEY_SET_BYTES_MAX, LAST_GOOD_SECONDS } from "../../limits/fetching.ts";
import type { Bundles, Clock } from "../../ports.ts";
import { ok, type Result } from "../../result.ts";
import type { RemoteDocument, SpiffeEndpoint } from "../../settings/settings.ts";
import { RSA_ALGORITHMS } from "../../spec/rfc7517.ts";
import { acceptsSuccessor, type Bundle, parseBundle, refreshSeconds } from "../../spec/spiffe/bundle.ts";
import { checkSigners, parseX509Svid } from "../../spec/spiffe/x509-svid.ts";
import { verifyPresented } from "../crypto/x509.ts";
import type { Judge } from "./checked-agent.ts";
import { fetchDocument } from "./fetch.ts";
import {
  type File,
  type KeySources,
  keySources,
  looked,
  parsed,
  readFileText,
  type SourceOptions,
} from "./key-sources.ts";
import type { Loaded } from "./polled-document.ts";

type BundlePlace = File | RemoteDocument | SpiffeEndpoint;

/**
 * SBN-3-2, SFD-4.2-4, SPCA-6-1, SPCA-6.1-3, PROD-2.4-3, PROD-4.4-7: one bundle for each trust domain, never merged, and
 * selected by the trust domain alone.
 */
export function bundleSources(options: SourceOptions): KeySources<BundlePlace> & Bundles {
  const { clock } = options;
  const parse = parseRepeatedly();
  const sources = keySources<Bundle, BundlePlace>({
    ...options,
    kind: "trust_bundle",
    lastGoodSeconds: LAST_GOOD_SECONDS,
    load: (where, latest) => loadBundle(where, latest, clock, parse),
    parse,
    accepts: acceptsSuccessor,
    sequence: (bundle) => bundle.sequence,
    keys: (bundle) => bundle.jwtKeys,
    size: ({ jwtKeys, x509Authorities }) => jwtKeys.length + x509Authorities.length,
    rsaAlgorithms: RSA_ALGORITHMS,
  });
  return {
    ...sources,
    async *anchors(trustDomain, until) {
      for await (const bundle of sources.copies(trustDomain, until)) {
        yield bundle.ok ? ok(authorities(bundle.value)) : bundle;
      }
    },
  };
}

/** The text of the last bundle is not parsed again: many trust domains may have one file, which each of them reads. */
function parseRepeatedly(): typeof parseBundle {
  let last: { text: string; bundle: ReturnType<typeof parseBundle> } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, bundle: parseBundle(text) };
    return last.bundle;
  };
}

async function loadBundle(
  where: BundlePlace,
  latest: Bundle | undefined,
  clock: Clock,
  parse: typeof parseBundle,
): Promise<Loaded<Bundle>> {
  const text = "file" in where ? await readFileText(where.file) : await fetchBundle(where, latest, clock);
  const value = parsed(parse, text);
  return { value, text, refreshSeconds: "file" in where ? FETCHED_SECONDS_MIN : refreshSeconds(value) };
}

/** One look at a bundle, as the server would load it; an error says why it cannot be used. */
export const lookAtBundle = (where: BundlePlace, clock: Clock): Promise<Result<Bundle, string>> =>
  looked(loadBundle(where, undefined, clock, parseBundle));

const authorities = ({ x509Authorities }: Bundle): readonly Uint8Array[] =>
  x509Authorities.map((text) => Uint8Array.fromBase64(text));

/** SFD-7.2-1: uses the configured profile, and no other one if that fails. */
async function fetchBundle(
  where: RemoteDocument | SpiffeEndpoint,
  latest: Bundle | undefined,
  clock: Clock,
): Promise<string> {
  if (!("endpointSpiffeId" in where)) return (await fetchDocument(where, KEY_SET_BYTES_MAX)).text;
  const anchors = authorities(latest ?? where.bootstrap);
  const judge = endpointJudge(where.endpointSpiffeId, anchors, clock);
  return (await fetchDocument(where, KEY_SET_BYTES_MAX, { judge })).text;
}

/**
 * SFD-5.2.2.4-1: the endpoint needs a valid X.509-SVID with exactly this ID, verified with the newest bundle. A bundle
 * that is too old for callers still serves here, because it is the newest statement of its trust domain.
 */
const endpointJudge =
  (spiffeId: string, anchors: readonly Uint8Array[], clock: Clock): Judge =>
  (presented) => {
    const path = verifyPresented(presented, anchors, clock.nowSeconds());
    if (!path.ok) return `the endpoint's certificate is refused (${path.error.kind})`;
    const [leaf] = path.value;
    const svid = leaf === undefined ? undefined : parseX509Svid(leaf);
    if (!svid?.ok) return `the endpoint's certificate is refused (${svid?.error.kind})`;
    if (svid.value.id !== spiffeId) return "the endpoint has another SPIFFE ID";
    const signers = checkSigners(path.value, svid.value.trustDomain);
    return signers.ok ? undefined : `the endpoint's certificate is refused (${signers.error.kind})`;
  };
