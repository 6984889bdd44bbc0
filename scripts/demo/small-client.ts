/**
 * A client that contacts a server for the first time and takes the first way in that is possible:
 * credentials it has, its metadata document, dynamic registration, credentials that its user enters.
 */
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { importPKCS8, SignJWT } from "jose";
import { makeKeyPem, publicJwk } from "../dev-keys.ts";
import { issueServerCertificate, makeAuthority } from "../dev-pki.ts";
import { type Answer, basic, postForm, send } from "../http-client.ts";

const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const ASSERTION_SECONDS = 60;

export type WayIn =
  | "pre-registered"
  | "metadata document"
  | "dynamic registration"
  | "credentials from the user";
export type Secret = { clientId: string; secret: string };

export type SmallClient = {
  /** The origin of its metadata document and key set. */
  origin: string;
  documentUrl: string;
  /** The authority of its web server, PEM. */
  ca: string;
  /** The metadata that it publishes and registers with. */
  metadata: object;
  /** Becomes a client of a server and requests a token. */
  enter(server: Server): Promise<{ wayIn: WayIn; clientId: string; answer: Answer }>;
  close(): Promise<void>;
};

export type Server = {
  issuer: string;
  ca: string;
  /** Credentials agreed in advance. */
  known?: Secret;
  /** The last resort: credentials that the user enters. */
  askUser: () => Promise<Secret>;
};

export async function startSmallClient(): Promise<SmallClient> {
  const keyPem = await makeKeyPem();
  const key = await importPKCS8(keyPem, "ES256");
  const authority = await makeAuthority("Authority of a small client");
  const tls = await issueServerCertificate(authority, ["localhost"]);
  const documents = new Map<string, object>();
  const web = createServer({ key: tls.keyPem, cert: tls.certPem }, (request, response) => {
    const document = documents.get(request.url ?? "");
    if (document === undefined) return response.writeHead(404).end();
    return response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(document));
  });
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
  const origin = `https://localhost:${(web.address() as AddressInfo).port}`;
  const documentUrl = `${origin}/client.json`;
  const metadata = {
    client_name: "Small client",
    redirect_uris: [`${origin}/callback`],
    grant_types: ["authorization_code", "client_credentials"],
    token_endpoint_auth_method: "private_key_jwt",
    jwks_uri: `${origin}/keys.json`,
  };
  documents.set("/client.json", { client_id: documentUrl, ...metadata });
  documents.set("/keys.json", { keys: [{ ...publicJwk(keyPem), use: "sig", alg: "ES256", kid: "small" }] });

  const askByKey = async ({ issuer, ca }: Server, clientId: string): Promise<Answer> => {
    const assertion = await new SignJWT({ jti: crypto.randomUUID() })
      .setProtectedHeader({ alg: "ES256", typ: "client-authentication+jwt", kid: "small" })
      .setIssuer(clientId)
      .setSubject(clientId)
      .setAudience(issuer)
      .setIssuedAt()
      .setExpirationTime(`${ASSERTION_SECONDS}s`)
      .sign(key);
    const form = { client_assertion_type: JWT_BEARER, client_assertion: assertion };
    return postForm(`${issuer}/token`, { grant_type: "client_credentials", ...form }, { ca });
  };
  const askBySecret = ({ issuer, ca }: Server, { clientId, secret }: Secret): Promise<Answer> =>
    postForm(
      `${issuer}/token`,
      { grant_type: "client_credentials" },
      { ca, headers: { authorization: basic(clientId, secret) } },
    );
  const register = async ({ ca }: Server, endpoint: string): Promise<string> => {
    const headers = { "content-type": "application/json" };
    const registered = await send(endpoint, { method: "POST", headers, body: JSON.stringify(metadata), ca });
    if (registered.status !== 201) throw new Error(`the registration is refused: ${registered.text}`);
    return String(registered.body.client_id);
  };

  return {
    origin,
    documentUrl,
    ca: authority.certPem,
    metadata,
    async enter(server) {
      if (server.known !== undefined) {
        const { clientId } = server.known;
        return { wayIn: "pre-registered", clientId, answer: await askBySecret(server, server.known) };
      }
      const { body } = await send(`${server.issuer}/.well-known/oauth-authorization-server`, {
        ca: server.ca,
      });
      if (body.client_id_metadata_document_supported === true) {
        const answer = await askByKey(server, documentUrl);
        return { wayIn: "metadata document", clientId: documentUrl, answer };
      }
      if (typeof body.registration_endpoint === "string") {
        const clientId = await register(server, body.registration_endpoint);
        return { wayIn: "dynamic registration", clientId, answer: await askByKey(server, clientId) };
      }
      const typed = await server.askUser();
      const answer = await askBySecret(server, typed);
      return { wayIn: "credentials from the user", clientId: typed.clientId, answer };
    },
    async close() {
      const closed = once(web, "close");
      web.close();
      web.closeAllConnections();
      await closed;
    },
  };
}
