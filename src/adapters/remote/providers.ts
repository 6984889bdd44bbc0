/** The OpenID Providers at which users sign in: their metadata, polled, and their token endpoints, asked with a code. */
import {
  FETCHED_SECONDS,
  FETCHED_SECONDS_MAX,
  FETCHED_SECONDS_MIN,
  LAST_GOOD_SECONDS,
  METADATA_BYTES_MAX,
} from "../../limits.ts";
import type { Clock, Random, Timers } from "../../ports.ts";
import type { ProviderFailure, Providers } from "../../ports-people.ts";
import type { Result } from "../../result.ts";
import { defined, err, ok } from "../../result.ts";
import type { Provider, RemoteDocument } from "../../settings/settings.ts";
import type { ProviderMetadata } from "../../spec/oidc.ts";
import {
  buildClientAssertion,
  parseProviderMetadata,
  parseTokenAnswer,
  parseTokenError,
  providerMetadataUrl,
} from "../../spec/oidc.ts";
import { JWT_BEARER } from "../../spec/rfc7523.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { freshSeconds } from "../../spec/rfc9111.ts";
import type { ProviderKey } from "../crypto/provider-keys.ts";
import { deriveProviderKey } from "../crypto/provider-keys.ts";
import type { EncryptionKeys } from "../crypto/system.ts";
import type { Posted } from "./fetch.ts";
import { FetchFailed, fetchDocument } from "./fetch.ts";
import type { FetchResult } from "./key-sources.ts";
import type { PolledDocument } from "./polled-document.ts";
import { pollDocument } from "./polled-document.ts";

export type ProviderOptions = {
  clock: Clock;
  timers: Timers;
  random: Random;
  encryptionKeys: EncryptionKeys;
  /** Called at the end of each request, with the name of the provider and the result. */
  onFetch: (name: string, note: FetchResult) => void;
  /** Once for each copy of its metadata: a user has another `sub` at every client of it. */
  onPairwise: (name: string) => void;
};

export type OpenProviders = Providers & {
  configure(providers: ReadonlyMap<string, Provider>): void;
  stop(): void;
};

/** The first key signs; all are published, so that the provider knows the next one before it signs. */
type Source = {
  provider: Provider;
  keys: readonly [ProviderKey, ...ProviderKey[]];
  metadata: PolledDocument<ProviderMetadata>;
};

const BOUNDS = { min: FETCHED_SECONDS_MIN, max: FETCHED_SECONDS_MAX, otherwise: FETCHED_SECONDS };
/** RFC 6749 5.2: the statuses of a token endpoint's errors, whose code is on record. */
const ERRORS: readonly number[] = [400, 401];
const UNAVAILABLE = err<ProviderFailure>({ reason: "provider_unavailable" });

export function openProviders(options: ProviderOptions): OpenProviders {
  const { clock, random, onFetch } = options;
  let sources = new Map<string, Source>();

  const metadataOf = async (name: string): Promise<Result<ProviderMetadata, ProviderFailure>> => {
    const polled = sources.get(name)?.metadata;
    if (polled === undefined) return UNAVAILABLE;
    const known = await polled.current();
    if (known !== undefined) return ok(known);
    // The provider may have come up since the last poll.
    for await (const _ of polled.looks()) {
      const found = await polled.current();
      if (found !== undefined) return ok(found);
    }
    return UNAVAILABLE;
  };
  return {
    metadata: metadataOf,
    async redeem(name, asked) {
      const source = sources.get(name);
      const metadata = await metadataOf(name);
      if (source === undefined || !metadata.ok) return UNAVAILABLE;
      const { auth } = source.provider;
      const pinned = auth.method === "private_key_jwt" ? auth.tokenEndpoint : undefined;
      const tokenEndpoint = pinned ?? metadata.value.tokenEndpoint;
      const post = tokenRequest(source, asked, clock.nowSeconds(), random.id());
      const startMs = clock.monotonicMs();
      const end = (failure: { failure?: string }): void =>
        onFetch(name, { ...failure, durationMs: Math.round(clock.monotonicMs() - startMs) });
      try {
        const { status, text } = await fetchDocument(at(source.provider, tokenEndpoint), METADATA_BYTES_MAX, {
          post,
        });
        if (ERRORS.includes(status)) {
          end({ failure: `the status is ${status}` });
          const error = parseTokenError(text);
          return err({ reason: "provider_refused", said: defined<JsonObject>({ status, error }) });
        }
        end({});
        const idToken = parseTokenAnswer(text);
        return idToken.ok ? idToken : err({ reason: idToken.error.kind, said: { status } });
      } catch (fault) {
        if (!(fault instanceof FetchFailed)) throw fault;
        end({ failure: fault.message });
        const { reason, status } = fault;
        if (reason !== "status") return UNAVAILABLE;
        return err({ reason: "provider_refused", said: defined<JsonObject>({ status }) });
      }
    },
    published: () => [...sources.values()].flatMap(({ keys }) => keys.map(({ publicJwk }) => publicJwk)),
    configure(providers) {
      const next = new Map<string, Source>();
      for (const [name, provider] of providers) {
        const old = sources.get(name);
        const same = JSON.stringify(old?.provider) === JSON.stringify(provider);
        next.set(name, same && old !== undefined ? old : open(provider, options));
      }
      for (const [name, old] of sources) if (next.get(name) !== old) old.metadata.stop();
      sources = next;
    },
    stop() {
      for (const { metadata } of sources.values()) metadata.stop();
    },
  };
}

/** The metadata of a provider, fetched once; or why it cannot be used. */
export async function lookAtProvider(provider: Provider): Promise<Result<ProviderMetadata, string>> {
  try {
    const { text } = await fetchDocument(
      at(provider, providerMetadataUrl(provider.issuer)),
      METADATA_BYTES_MAX,
    );
    const metadata = parseProviderMetadata(text, provider.issuer);
    return metadata.ok ? metadata : err(metadata.error.kind);
  } catch (fault) {
    if (fault instanceof FetchFailed) return err(fault.message);
    throw fault;
  }
}

function open(
  provider: Provider,
  { clock, timers, encryptionKeys, onFetch, onPairwise }: ProviderOptions,
): Source {
  const { name, issuer } = provider;
  const load = async () => {
    const startMs = clock.monotonicMs();
    const end = (failure: { failure?: string }): void =>
      onFetch(name, { ...failure, durationMs: Math.round(clock.monotonicMs() - startMs) });
    try {
      // OIDCD-4-1, OIDCD-4.2-1, OIDCD-7.1-1
      const fetched = await fetchDocument(at(provider, providerMetadataUrl(issuer)), METADATA_BYTES_MAX);
      const metadata = parseProviderMetadata(fetched.text, issuer);
      end(metadata.ok ? {} : { failure: metadata.error.kind });
      if (!metadata.ok) throw new Error(metadata.error.kind);
      return { value: metadata.value, text: fetched.text, refreshSeconds: freshSeconds(fetched, BOUNDS) };
    } catch (fault) {
      if (fault instanceof FetchFailed) end({ failure: fault.message });
      throw fault;
    }
  };
  const metadata = pollDocument<ProviderMetadata>({
    load: async () => {
      const loaded = await load();
      if (!loaded.value.hasPublicSubjects) onPairwise(name);
      return loaded;
    },
    accepts: () => true,
    same: (old, next) => JSON.stringify(old) === JSON.stringify(next),
    onChange: () => undefined,
    clock,
    timers,
    lastGoodSeconds: LAST_GOOD_SECONDS,
  });
  const [first, ...others] = encryptionKeys;
  const derive = (one: Uint8Array): ProviderKey => deriveProviderKey(one, name);
  return { provider, keys: [derive(first), ...others.map(derive)], metadata };
}

/** What the operator permits for the issuer does not extend to an endpoint on another origin. */
function at({ issuer, ca, privateNetworks }: Provider, url: string): RemoteDocument {
  const within = new URL(url).origin === new URL(issuer).origin;
  return within ? defined<RemoteDocument>({ url, ca, privateNetworks }) : { url, privateNetworks: [] };
}

/** OIDC-3.1.3.1-1: the code, with the one method that is agreed with the provider. */
function tokenRequest(
  { provider: { auth, clientId }, keys: [key] }: Source,
  { code, verifier, redirectUri }: { code: string; verifier: string; redirectUri: string },
  nowSeconds: number,
  jti: string,
): Posted {
  const form = new URLSearchParams({
    grant_type: "authorization_code",
    code,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  });
  const post = (authorization?: string): Posted =>
    defined<Posted>({
      contentType: "application/x-www-form-urlencoded",
      text: form.toString(),
      authorization,
      errors: ERRORS,
    });
  switch (auth.method) {
    case "client_secret_basic": {
      // RFC 6749 2.3.1: both halves are form-encoded before they are joined.
      const [name, secret] = [clientId, auth.secret].map((half) =>
        new URLSearchParams({ h: half }).toString().slice(2),
      );
      return post(`Basic ${Buffer.from(`${name}:${secret}`).toString("base64")}`);
    }
    case "client_secret_post":
      form.set("client_id", clientId);
      form.set("client_secret", auth.secret);
      return post();
    case "private_key_jwt":
      form.set("client_id", clientId);
      form.set("client_assertion_type", JWT_BEARER);
      form.set(
        "client_assertion",
        key.sign(buildClientAssertion({ clientId, audience: auth.audience }, nowSeconds, jti)),
      );
      return post();
  }
}
