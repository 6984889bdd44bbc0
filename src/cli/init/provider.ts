/** Looks at the OpenID Provider that `mandate init` was told, over HTTPS, and finds how this server fits it. */
import { fetchDocument } from "../../adapters/remote/fetch.ts";
import { FetchFailed } from "../../adapters/remote/fetch-failed.ts";
import { METADATA_BYTES_MAX } from "../../limits/fetching.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { RemoteDocument } from "../../settings/settings.ts";
import { ASSERTION_ALGORITHMS } from "../../spec/rfc8725.ts";
import { readNamed } from "../named-file.ts";

export type FoundProvider = {
  issuer: string;
  idTokenAlg: string;
  /** How users sign in at the provider for this server; absent if they do not. */
  client?: { id: string; method: "private_key_jwt" | "client_secret_basic" | "client_secret_post" };
  hasAuthority: boolean;
  networks: readonly string[];
};

export type ToldProvider = Pick<FoundProvider, "issuer" | "networks"> & {
  clientId?: string;
  hasSecret: boolean;
  /** The file of a private authority. */
  caFile?: string;
};

/** Fetches the metadata, which must name exactly this issuer; `unreachable` says that the same may succeed later. */
export async function findProvider(
  told: ToldProvider,
): Promise<Result<FoundProvider, { text: string; unreachable: boolean }>> {
  const { issuer, clientId, networks: privateNetworks, caFile, hasSecret } = told;
  const { describeMetadataFailure, parseProviderMetadata, providerMetadataUrl } = await import(
    "../../people/door.ts"
  );
  const url = providerMetadataUrl(issuer);
  const ca = caFile === undefined ? undefined : readNamed(caFile);
  const refuse = (text: string) => err({ text: `${url} ${text}`, unreachable: false });
  let text: string;
  try {
    const place = defined<RemoteDocument>({ url, privateNetworks, ca });
    text = (await fetchDocument(place, METADATA_BYTES_MAX)).text;
  } catch (fault) {
    if (!(fault instanceof FetchFailed)) throw fault;
    const remedy = "correct --provider, --provider-ca or --provider-network";
    return err({ text: `${url} cannot be fetched (${fault.message}): ${remedy}`, unreachable: true });
  }
  const metadata = parseProviderMetadata(text, issuer);
  if (!metadata.ok) {
    return refuse(`is not the metadata of ${issuer} (${describeMetadataFailure(metadata.error)})`);
  }
  const listed: Record<string, unknown> = JSON.parse(text);
  const namesOf = (member: string, otherwise: readonly string[]): readonly string[] => {
    const list = listed[member];
    return Array.isArray(list) ? list.map(String) : otherwise;
  };
  // OpenID Connect Discovery 1.0, 3: the default of a provider that lists no methods.
  const methods = namesOf("token_endpoint_auth_methods_supported", ["client_secret_basic"]);
  const wanted = hasSecret
    ? (["client_secret_basic", "client_secret_post"] as const)
    : (["private_key_jwt"] as const);
  const method = wanted.find((one) => methods.includes(one));
  if (clientId !== undefined && method === undefined) {
    const remedy = hasSecret ? "leave --client-secret out" : "give its secret with --client-secret FILE";
    return refuse(`does not list ${wanted.join(" or ")}: ${remedy}`);
  }
  const algorithms = namesOf("id_token_signing_alg_values_supported", ["RS256"]);
  // RS256 is what a provider signs with for a client that has asked for nothing else.
  const idTokenAlg = ["RS256", ...ASSERTION_ALGORITHMS].find((one) => algorithms.includes(one));
  if (idTokenAlg === undefined) return refuse(`lists no algorithm of ID tokens that this server verifies`);
  const client = clientId === undefined || method === undefined ? undefined : { id: clientId, method };
  const hasAuthority = ca !== undefined;
  return ok(defined<FoundProvider>({ issuer, idTokenAlg, client, hasAuthority, networks: privateNetworks }));
}
