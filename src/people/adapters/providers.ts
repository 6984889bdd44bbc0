/** The OpenID Providers at which users sign in: their metadata, polled, and their token endpoints, asked with a code. */

import type { EncryptionKeys } from "../../adapters/crypto/encryption-keys.ts";
import { CheckedAgent } from "../../adapters/remote/checked-agent.ts";
import { type FetchOptions, FRESH_BOUNDS, fetchDocument, type Posted } from "../../adapters/remote/fetch.ts";
import { FetchFailed } from "../../adapters/remote/fetch-failed.ts";
import { type FetchResult, timeFetch } from "../../adapters/remote/fetch-timer.ts";
import { type PolledDocument, pollDocument } from "../../adapters/remote/polled-document.ts";
import { KEPT_CONNECTION_SECONDS, LAST_GOOD_SECONDS, METADATA_BYTES_MAX } from "../../limits/fetching.ts";
import type { Clock, Random, Timers } from "../../ports.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { Provider, RemoteDocument } from "../../settings/settings.ts";
import { JWT_BEARER } from "../../spec/rfc7523.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { freshSeconds } from "../../spec/rfc9111.ts";
import type { ProviderFailure, Providers } from "../ports.ts";
import {
  buildClientAssertion,
  describeMetadataFailure,
  type ProviderMetadata,
  parseActive,
  parseProviderMetadata,
  parseRefreshAnswer,
  parseTokenAnswer,
  parseTokenError,
  parseUserInfo,
  providerMetadataUrl,
} from "../spec/oidc.ts";
import { makePause, type Pause } from "./pause.ts";
import { deriveProviderKey, type ProviderKey } from "./provider-keys.ts";

export type ProviderOptions = {
  clock: Clock;
  timers: Timers;
  random: Random;
  encryptionKeys: EncryptionKeys;
  /** Called at the end of each request, with the name of the provider and the result. */
  onFetch: (name: string, note: FetchResult) => void;
  /** Called once for each copy of the metadata of a provider that gives a user another `sub` at every client. */
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
  /** A provider that is silent is paused, because each browser would wait for it. */
  pause: Pause;
  /** The connection is kept, because a sign-in would cost a handshake more. */
  connections: CheckedAgent;
};

/** RFC 6749 5.2: the statuses of a token endpoint's errors, whose code is on record; some providers answer 403. */
const ERRORS: readonly number[] = [400, 401, 403];
/** RFC 6749 5.2, OIDC 3.1.2.6: the codes that are about the user; every other one is about this server, or about nothing. */
const ABOUT_USER: ReadonlyMap<unknown, ProviderFailure["reason"]> = new Map([
  ["invalid_grant", "provider_denies_user"],
  ["interaction_required", "provider_wants_user"],
  ["login_required", "provider_wants_user"],
  ["consent_required", "provider_wants_user"],
]);
const UNAVAILABLE = err<ProviderFailure>({ reason: "provider_unavailable" });

export function openProviders(options: ProviderOptions): OpenProviders {
  let sources = new Map<string, Source>();

  const { metadataOf, ask } = asker(options, (name) => sources.get(name));
  return {
    metadata: metadataOf,
    async redeem(name, { code, verifier, redirectUri }) {
      const form = {
        grant_type: "authorization_code",
        code,
        redirect_uri: redirectUri,
        code_verifier: verifier,
      };
      return ask(name, tokenEndpoint, form, parseTokenAnswer);
    },
    async confirm(name, token) {
      if (sources.get(name)?.provider.recheck === "introspection") {
        const shown = { token, token_type_hint: "refresh_token" };
        const active = await ask(name, introspectionEndpoint, shown, parseActive);
        if (!active.ok) return active;
        return active.value ? ok({}) : err({ reason: "provider_denies_user" });
      }
      const form = { grant_type: "refresh_token", refresh_token: token };
      const tokens = await ask(name, tokenEndpoint, form, parseRefreshAnswer);
      if (tokens.ok) return tokens;
      const { reason, said } = tokens.error;
      return err({ ...tokens.error, reason: ABOUT_USER.get(said?.error) ?? reason });
    },
    userInfo: async (name, bearer) => ask(name, userInfoEndpoint, { bearer }, parseUserInfo),
    published: (name) => sources.get(name)?.keys.map(({ publicJwk }) => publicJwk),
    configure(providers) {
      const next = new Map<string, Source>();
      for (const [name, provider] of providers) {
        const old = sources.get(name);
        const same = JSON.stringify(old?.provider) === JSON.stringify(provider);
        next.set(name, same && old !== undefined ? old : open(provider, options));
      }
      for (const [name, old] of sources) if (next.get(name) !== old) close(old);
      sources = next;
    },
    stop() {
      for (const source of sources.values()) close(source);
    },
  };
}

/** Asks a provider for its metadata, by a form or for its userinfo, unless it failed just now. */
function asker(options: ProviderOptions, find: (name: string) => Source | undefined) {
  const metadataOf = async (name: string): Promise<Result<ProviderMetadata, ProviderFailure>> => {
    const source = find(name);
    if (source === undefined || source.pause.on()) return UNAVAILABLE;
    const { metadata, pause } = source;
    const known = metadata.state().state !== "none";
    const found = known ? await metadata.current() : await pause.ask(() => lookFor(metadata), isThere);
    return found === undefined ? UNAVAILABLE : ok(found);
  };
  /** Posts a form to an endpoint of the provider, or shows it an access token, and reads what it answers. */
  const ask = async <T>(
    name: string,
    endpoint: (source: Source, metadata: ProviderMetadata) => string | undefined,
    sent: Readonly<Record<string, string>> | { bearer: string },
    parse: (text: string) => Result<T, { kind: ProviderFailure["reason"] }>,
  ): Promise<Result<T, ProviderFailure>> => {
    const source = find(name);
    const metadata = await metadataOf(name);
    const url = source && metadata.ok ? endpoint(source, metadata.value) : undefined;
    if (source === undefined || url === undefined) return UNAVAILABLE;
    const answered = await source.pause.ask(
      () => send(url, source, sent, options),
      (result) => result !== UNAVAILABLE,
    );
    if (answered === undefined) return UNAVAILABLE;
    if (!answered.ok) return answered;
    const { text, status } = answered.value;
    const read = parse(text);
    return read.ok ? read : err({ reason: read.error.kind, said: { status } });
  };
  return { metadataOf, ask };
}

const isThere = (found: ProviderMetadata | undefined): boolean => found !== undefined;

/** The provider may have come up since the last poll. */
async function lookFor(metadata: Source["metadata"]): Promise<ProviderMetadata | undefined> {
  const known = await metadata.current();
  if (known !== undefined) return known;
  for await (const _ of metadata.looks()) {
    const found = await metadata.current();
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The token endpoint as the operator pinned it, or as metadata name it. */
const tokenEndpoint = ({ provider: { auth } }: Source, metadata: ProviderMetadata): string =>
  (auth.method === "private_key_jwt" ? auth.tokenEndpoint : undefined) ?? metadata.tokenEndpoint;

const introspectionEndpoint = (_: Source, metadata: ProviderMetadata): string | undefined =>
  metadata.introspectionEndpoint;

const userInfoEndpoint = (_: Source, metadata: ProviderMetadata): string | undefined =>
  metadata.userInfoEndpoint;

async function send(
  url: string,
  source: Source,
  sent: Readonly<Record<string, string>> | { bearer: string },
  options: ProviderOptions,
): Promise<Result<{ text: string; status: number }, ProviderFailure>> {
  const { provider } = source;
  const asked =
    "bearer" in sent
      ? { authorization: `Bearer ${sent.bearer}` }
      : { post: authenticated(source, sent, options.clock.nowSeconds(), options.random.id()) };
  const end = timeFetch(options.clock, (note) => options.onFetch(provider.name, note));
  try {
    const agent = isWithin(provider, url) ? source.connections : undefined;
    const asking = defined<FetchOptions>({ ...asked, agent });
    const { status, text } = await fetchDocument(at(provider, url), METADATA_BYTES_MAX, asking);
    if (ERRORS.includes(status)) {
      const error = parseTokenError(text);
      end(`the status is ${status}, and its error ${error ?? "is none that can be read"}`);
      return err({ reason: "provider_refused", said: defined<JsonObject>({ status, error }) });
    }
    end();
    return ok({ text, status });
  } catch (fault) {
    if (!(fault instanceof FetchFailed)) throw fault;
    end(fault.message);
    const { reason, status } = fault;
    if (reason !== "status") return UNAVAILABLE;
    return err({ reason: "provider_refused", said: defined<JsonObject>({ status }) });
  }
}

/** The metadata of a provider, fetched once; or why it cannot be used. */
export async function lookAtProvider(provider: Provider): Promise<Result<ProviderMetadata, string>> {
  try {
    const { text } = await fetchDocument(
      at(provider, providerMetadataUrl(provider.issuer)),
      METADATA_BYTES_MAX,
    );
    const metadata = parseProviderMetadata(text, provider.issuer);
    return metadata.ok ? metadata : err(describeMetadataFailure(metadata.error));
  } catch (fault) {
    if (fault instanceof FetchFailed) return err(fault.message);
    throw fault;
  }
}

function open(provider: Provider, options: ProviderOptions): Source {
  const { clock, timers, encryptionKeys, onPairwise } = options;
  const { name, issuer } = provider;
  const pause = makePause(clock);
  const load = async () => {
    const end = timeFetch(clock, (note) => options.onFetch(name, note));
    try {
      // OIDCD-4-1, OIDCD-4.2-1, OIDCD-7.1-1
      const fetched = await fetchDocument(at(provider, providerMetadataUrl(issuer)), METADATA_BYTES_MAX);
      const metadata = parseProviderMetadata(fetched.text, issuer);
      const failure = metadata.ok ? undefined : describeMetadataFailure(metadata.error);
      end(failure);
      if (!metadata.ok) throw new Error(failure);
      return {
        value: metadata.value,
        text: fetched.text,
        refreshSeconds: freshSeconds(fetched, FRESH_BOUNDS),
      };
    } catch (fault) {
      if (fault instanceof FetchFailed) end(fault.message);
      throw fault;
    }
  };
  const metadata = pollDocument<ProviderMetadata>({
    load: async () => {
      const loaded = await load();
      pause.end();
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
  const connections = new CheckedAgent(at(provider, issuer), {
    kept: { ms: KEPT_CONNECTION_SECONDS * 1000, clock },
  });
  return { provider, keys: [derive(first), ...others.map(derive)], metadata, pause, connections };
}

function close({ metadata, connections }: Source): void {
  metadata.stop();
  connections.retire();
}

const isWithin = ({ issuer }: Provider, url: string): boolean =>
  new URL(url).origin === new URL(issuer).origin;

/** What the operator permits for the issuer does not extend to an endpoint on another origin. */
function at(provider: Provider, url: string): RemoteDocument {
  const { ca, privateNetworks } = provider;
  return isWithin(provider, url)
    ? defined<RemoteDocument>({ url, ca, privateNetworks })
    : { url, privateNetworks: [] };
}

/** OIDC-3.1.3.1-1: the form, with the one method that is agreed with the provider. */
function authenticated(
  { provider: { auth, clientId }, keys: [key] }: Source,
  parameters: Readonly<Record<string, string>>,
  nowSeconds: number,
  jti: string,
): Posted {
  const form = new URLSearchParams(parameters);
  const withForm = (authorization?: string): Posted =>
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
      return withForm(`Basic ${Buffer.from(`${name}:${secret}`).toString("base64")}`);
    }
    case "client_secret_post":
      form.set("client_id", clientId);
      form.set("client_secret", auth.secret);
      return withForm();
    case "private_key_jwt":
      form.set("client_id", clientId);
      form.set("client_assertion_type", JWT_BEARER);
      form.set(
        "client_assertion",
        key.sign(buildClientAssertion({ clientId, audience: auth.audience }, nowSeconds, jti)),
      );
      return withForm();
  }
}
