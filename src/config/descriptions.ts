/**
 * What each member of the configuration file is for, as editors and `mandate init` show it; `npm run schema` puts these
 * texts into the JSON Schema. A row is found by the end of a member's path, the longest one first; `*` stands for a name
 * of the operator's choice and for an entry of an array. A member without a row, and a row without a member, is an error.
 */
export const DESCRIPTIONS: Readonly<Record<string, string>> = {
  $schema: "The JSON Schema of this file, for editors; the server does not read it.",
  version: "The version of this format: 1.",
  profile:
    'What the server demands: "production" (the default), or "development", which listens on loopback only and allows weak secrets.',
  issuer:
    "The https URL of this server, without a final slash. It is the `iss` of every token, and all endpoints and audiences begin with it.",

  listen: "The main HTTPS listener. It asks clients for certificates unless there is `mtls` or `signIn`.",
  "listen.drainSeconds":
    "How many seconds all listeners serve on after SIGTERM: 5 by default in production, 0 in development.",
  "listen.reusePort":
    "Whether several processes of one user listen on the same port (also of `mtls` and `proxy`), each with its own `audit.instance` and port of `operations`; Linux and PostgreSQL only.",
  host: "The address on which this listener listens, such as 127.0.0.1, 0.0.0.0 or ::.",
  port: "The TCP port; 0 takes a free one at each start.",
  tls: "The certificate of this listener and its private key. Renewed files are taken into use without a restart.",
  "tls.key": "The private key of the certificate.",
  "tls.cert": "The certificate, followed by its intermediates.",
  file: "The name of a file, relative to the folder of this configuration.",
  env: "The name of an environment variable that has the value.",
  "tls.key.file": "A private key in PEM, relative to the folder of this configuration.",
  "tls.cert.file": "Certificates in PEM, relative to the folder of this configuration.",
  mtls: "A second HTTPS listener, the only one that asks clients for certificates.",
  "mtls.origin": "The https origin of this listener, which the metadata publish in mtls_endpoint_aliases.",
  proxy:
    "A listener for one TLS-terminating proxy, which forwards the certificates of its clients (RFC 9440).",
  "proxy.ca": "The authorities of the proxy's own client certificate.",
  "proxy.name": "The DNS name in the proxy's own client certificate.",
  "proxy.clientAddress":
    "The header field to which this proxy adds the address of its client; without it all clients have the address of the proxy.",
  operations: "A plain HTTP listener for /livez, /readyz and /metrics, for the operator's tools only.",
  "operations.host": "The address on which it listens; 127.0.0.1 by default.",

  store: 'Where everything is kept: { "sqlite": FILE } for one instance, { "postgres": … } for several.',
  "store.sqlite": "The database file, relative to the folder of this configuration.",
  "store.postgres":
    "The connection URL of the database, such as postgres://user:password@host/database?sslmode=verify-full&sslrootcert=ca.pem.",
  "store.connections": "Connections of one instance to the database, at most; 10 by default.",
  "store.startSeconds":
    "How many seconds the start waits for a database that does not answer; 60 by default.",
  keys: "The keys of this server.",
  "keys.otherEncryptionKey":
    "A second key-encryption key, while one replaces the other: it decrypts, and what is derived from it is accepted.",
  "keys.service": "A key service of yours that makes the signing keys and signs with them.",
  "keys.service.url": "Its URL, below which are /keys and /sign.",
  "keys.service.authorization": "The value of the header field Authorization for it.",
  "keys.rotateSeconds": "How long a signing key signs; 90 days by default.",
  "keys.announceSeconds": "How long a signing key is published at least before it signs; a day by default.",
  "keys.retireSeconds": "How long a signing key is published after it has signed; two hours by default.",
  "keys.cacheSeconds": "How long a verifier may keep our key set (max-age of /jwks); 300 by default.",
  "keys.encryptionKey":
    "The key-encryption key: 32 random bytes in base64url. Our signing keys are stored encrypted with it; back it up apart from the database.",

  audit: "The audit trail.",
  "audit.instance":
    "The name of this instance and of its log; each running instance needs its own. 1 to 63 characters of a-z, 0-9 and -.",
  "audit.leaseSeconds":
    "PostgreSQL only: how many seconds the name of this instance stays taken after a crash; 5 by default.",
  "audit.checkpoint": "When a checkpoint of the trail is signed.",
  "audit.checkpoint.events": "After this many events; 1000 by default.",
  "audit.checkpoint.seconds": "After this many seconds, if there are new events; 60 by default.",
  "audit.witness":
    'A place outside the database that gets every checkpoint: { "file": … }, "stdout" or { "url": … }. Beside a file stands what this instance wrote last. Without a file, a start does not notice that the store went back.',
  "audit.witness.file":
    "A file to which checkpoints are appended, relative to the folder of this configuration.",
  "audit.witness.authorization": "The value of the Authorization header field for the URL.",
  "audit.retentionDays": "How many days events are kept; 400 by default.",

  assertionAudience:
    'The audience that a client assertion must have: "issuer-or-token-endpoint" (the default), or "issuer" alone, which is strict.',
  clockSkewSeconds: "By how many seconds the clocks of others may differ from ours; 30 by default.",
  clientAssertionSeconds:
    "The longest age and lifetime, in seconds, of a client assertion with a `jti`; 300 by default, 3600 at most.",

  trustDomains: "The SPIFFE trust domains whose workloads are clients, by name.",
  "trustDomains.*.bundle":
    'The trust bundle: { "file": … }, { "url": … }, or the same with "profile": "https_spiffe" and its members.',
  "trustDomains.*.bundle.profile":
    "How the bundle endpoint authenticates: https_web (the default), by a certificate of the Web PKI or `ca`, or https_spiffe, by an SVID.",
  "trustDomains.*.bundle.endpointSpiffeId": "https_spiffe only: the SPIFFE ID of the bundle endpoint.",
  "trustDomains.*.bundle.bootstrap": "https_spiffe only: a bundle with which the first fetch is verified.",
  "trustDomains.*.admit":
    'The workloads that are clients without an entry in `clients`: "all" (the default), "none", or SPIFFE IDs and prefixes that end in /*.',
  "trustDomains.*.requireClientId": "Whether client_id is required beside a JWT-SVID; false by default.",
  url: "An https URL. It reaches public addresses, and private ones only as `privateNetworks` permits.",
  ca: "The authority that issued the certificate of that server, if it is a private one.",
  "ca.file": "Certificates in PEM, relative to the folder of this configuration.",
  privateNetworks:
    "Private networks that the URL may lead to, in CIDR form, such as 10.0.0.0/8; none by default.",

  trustedIssuers: "The issuers whose tokens are accepted, by their identifier (`iss`).",
  "trustedIssuers.*.keys":
    'Its public keys: { "discover": true } by its metadata, { "url": … } of a JWK Set, or { "file": … }.',
  "trustedIssuers.*.keys.discover": "Reads the URL of the keys from the issuer's own metadata.",
  "trustedIssuers.*.audiences":
    "The audiences of which its tokens must have one; by default the issuer of this server.",
  "trustedIssuers.*.acceptAs":
    "The types under which its tokens are accepted as subject tokens: jwt (the default), id_token, access_token; [] for none.",
  "trustedIssuers.*.types": "The accepted `typ` headers; null stands for a token without one.",
  "trustedIssuers.*.algorithms":
    "The accepted signature algorithms; by default all that this server verifies.",
  "trustedIssuers.*.subjects":
    'What its subjects are called here: "keep" (for one issuer only), { "prefix": … } or { "table": … }.',
  "subjects.prefix": "A text put before each `sub`.",
  "subjects.table": "The name here for each `sub`; a subject that is not in it is refused.",
  "trustedIssuers.*.subjectClaim": "The claim that names a user, for all clients alike; `sub` by default.",
  "trustedIssuers.*.scopes":
    "What a token of it without `scope`, such as an ID token, permits; nothing by default.",
  "trustedIssuers.*.maxAgeSeconds": "The longest age of its tokens, in seconds.",
  "trustedIssuers.*.vouches": "Present: its tokens authenticate clients that name it in `vouchedBy`.",
  "trustedIssuers.*.vouches.maxAgeSeconds": "The longest age of such a token, in seconds; 300 by default.",
  "trustedIssuers.*.vouches.reusable": "Whether such a token may be sent again until then; false by default.",
  "trustedIssuers.*.statements":
    "Whether its software statements are accepted at registration; false by default.",
  "trustedIssuers.*.grants": "Present: its JWT authorization grants are redeemed.",
  "trustedIssuers.*.grants.profiles": "The kinds of grants: jwt, id-jag; both by default.",
  "trustedIssuers.*.grants.scopes": "What a grant without `scope` permits; nothing by default.",
  "trustedIssuers.*.grants.requireClientId": "Whether a plain grant must name its client; true by default.",
  "trustedIssuers.*.disabled": "Refuses this issuer in every role, as if it were not configured.",
  "trustedIssuers.*.disabledSubjects":
    "Subjects of this issuer, by their `sub` there, that are refused in every role.",

  clients: "The clients that are configured, by client_id.",
  "clients.*.method": 'How the client authenticates; "metadata_document": as the document says.',
  "clients.*.document":
    "The metadata document of the client whose name is its URL, for a host that does not answer this server.",
  "clients.*.document.client_id": "The URL once more.",
  "clients.*.secrets": "Its secrets; several may be valid at once. Each has at least 32 characters.",
  "clients.*.secrets.*.expires": "When this secret ends, such as 2027-01-31T00:00:00Z; without it, never.",
  "clients.*.redirectUris": "Where authorization codes for it may be sent.",
  "clients.*.title": "The name of the client that users are shown.",
  "clients.*.grantTypes": "The grant types that it may use; by default all.",
  "clients.*.workload": "The SPIFFE ID as which it acts; rules name it by this.",
  "clients.*.actorAccessToken": "Whether its own access token may be its actor token; false by default.",
  "clients.*.defaultTarget": "The target of a request that names none.",
  "clients.*.tls_client_certificate_bound_access_tokens":
    "Whether its tokens must be bound to its certificate; false by default.",
  "clients.*.dpop_bound_access_tokens": "Whether its tokens must be bound to a DPoP key; false by default.",
  "clients.*.jwks": "Its public keys or certificates, as a JWK Set.",
  "clients.*.jwks.keys": "The keys of the set.",
  "clients.*.jwksUri": "The URL of its public keys.",
  "clients.*.vouchedBy": "The issuers that vouch for it, instead of keys of its own.",
  "clients.*.vouchedBy.*.issuer": "One of `trustedIssuers`, with `vouches`.",
  "clients.*.vouchedBy.*.claims": "The claims that its token must have, each with its exact value.",
  "clients.*.spiffeId": "Its SPIFFE ID, or a prefix that ends in /*.",
  "clients.*.ca": "The authorities of its certificate.",
  "clients.*.tls_client_auth_subject_dn": "The subject of its certificate. Exactly one of the five is set.",
  "clients.*.tls_client_auth_san_dns": "The DNS name of its certificate. Exactly one of the five is set.",
  "clients.*.tls_client_auth_san_uri": "The URI of its certificate. Exactly one of the five is set.",
  "clients.*.tls_client_auth_san_ip": "The IP address of its certificate. Exactly one of the five is set.",
  "clients.*.tls_client_auth_san_email":
    "The email address of its certificate. Exactly one of the five is set.",

  registration: "How clients register themselves (RFC 7591).",
  "registration.mode":
    'Who may register: "initial-access-token" (the default) demands a token that the operator made, "open" demands nothing, "off" allows none.',
  "registration.open":
    "The most that a client may register for without an initial access token. It limits the clients that did so in the other modes too; without it the last one stands for them.",
  "registration.open.grantTypes": "Its grant types; client_credentials by default.",
  "registration.open.scopes": "Its scopes.",
  "registration.clientSecretSeconds":
    "How many seconds a secret lasts that is issued at registration; without it, until it is replaced.",
  "registration.clientsMax": "Registered clients of one class, at most; 10000 by default.",
  "registration.unusedSeconds":
    "A client that never got a token is removed this many seconds after its registration; 7 days by default.",
  "registration.unusedOpenSeconds":
    "The same for a client that asks users and registered without an initial access token; 1 day by default.",
  "registration.idleSeconds":
    "A client is removed this many seconds after its last token; 90 days by default.",
  "registration.tlsAuthorities": "The authorities for clients that register with tls_client_auth.",
  clientMetadataDocuments: "Present: a client may be the https URL of its metadata document.",
  "clientMetadataDocuments.origins": "The only origins of such documents; without it, all.",
  "clientMetadataDocuments.foreignKeys": "Whether its jwks_uri may be of another origin; false by default.",
  clientOrigins:
    "By origin: what URLs that clients supply may reach there. Without an entry, only public addresses.",
  consents: "How users manage their consents by API.",
  "consents.issuers": "The issuers whose users may, by identifier.",
  "consents.issuers.*.clients": "The accepted `azp` or `client_id` of such a token.",
  "consents.issuers.*.types": "The accepted `typ` headers; null stands for a token without one.",
  cors: "Which web pages may be clients: their scripts read what /token, /par, /register and /revoke answer.",
  "cors.origins": "The origins of such pages, as a browser writes them; none by default.",
  dpop: "Tokens that are bound to a key by DPoP (RFC 9449).",
  "dpop.algorithms": "The accepted algorithms of proofs; [] turns DPoP off.",
  "dpop.nonces": 'Where a proof needs a nonce of this server: "token", "api"; ["api"] by default.',

  signIn:
    "Present: users sign in at an OpenID Provider, and clients may ask them for access. Where it comes or goes, a restart decides whether `listen` asks for certificates.",
  "signIn.providers":
    "The providers, each by a name that is part of its redirect URI {issuer}/callback/NAME.",
  "signIn.providers.*.issuer": "One of `trustedIssuers`.",
  "signIn.providers.*.title": "What users are shown where there are several; by default its host.",
  "signIn.providers.*.clientId": "The client_id of this server at the provider.",
  "signIn.providers.*.method":
    "How this server authenticates there: private_key_jwt (the default; its keys are at {issuer}/rp/jwks), or by a secret.",
  "signIn.providers.*.clientSecret":
    "The secret of this server at the provider, for the two methods with one.",
  "signIn.providers.*.assertionAudience":
    'The audience of this server\'s assertions for private_key_jwt: "issuer" (the default, as FAPI and RFC 10070 want it) or "token_endpoint" (as OpenID Connect Core 9 has it).',
  "signIn.providers.*.tokenEndpoint":
    'The token endpoint of the provider, which "token_endpoint" requires; its metadata are not asked for it then.',
  "signIn.providers.*.idTokenAlg": "The one signature algorithm of its ID tokens; RS256 by default.",
  "signIn.providers.*.scopes": "Scopes to ask for beside openid, for the user's name alone.",
  "signIn.providers.*.maxAgeSeconds": "How old a sign-in may be, in seconds.",
  "signIn.providers.*.requiredAcr": "The authentication context classes of which a sign-in must have one.",
  authorize: "What clients that ask users may do.",
  "authorize.localhost":
    'How redirect URIs of http://localhost are compared: "any-port" (the default), "exact", or "off".',
  "authorize.privateUse": "The accepted redirect URIs with a scheme of an app, each exactly.",
  "authorize.consentDays": "How many days a consent lasts that a user gave on our page; 90 by default.",
  "authorize.refresh": "How long refresh tokens may be used, from the click of their user.",
  "authorize.refresh.days":
    "How many days a client may go on without its user where they allow that; 30 by default, 90 at most.",
  "authorize.refresh.idleDays": "After how many days without use that ends; 7 by default.",
  "authorize.refresh.hours":
    "For how many hours refresh tokens may be used anywhere else; 12 by default, 24 at most.",
  "authorize.refresh.retrySeconds":
    "How many seconds after a rotation the token before it gives the same successor to the same source; 10 by default, 60 at most. For as long a thief at that source may follow the client unseen.",
  pages: "In whose name and colours users are shown pages.",
  "pages.operator": "The name at the top of every page; by default the host of the issuer.",
  "pages.colours": "The colour of links and buttons in each scheme.",
  "pages.colours.light": "In the light scheme, such as #1f4fbf; with a contrast of 4.5 to 1 at least.",
  "pages.colours.dark": "In the dark scheme, such as #9dbdff; with a contrast of 4.5 to 1 at least.",

  limits: "How much one caller may ask for.",
  "limits.failuresPerMinuteBySource": "Failed authentications of one source; 60 by default.",
  "limits.failuresPerMinuteByClient": "Failed authentications of one source as one client; 20 by default.",
  "limits.proofMillisecondsPerSecond": "CPU time for verifications that fail; 300 by default.",
  "limits.requestsPerSecondByClient":
    "Requests of one client that proved itself; 500 by default. A public client, whose name anyone can say, is limited by what fails alone.",
  "limits.pagesPerMinuteBySource": "Pages that one source is shown; 600 by default.",
  "limits.registrationsPerHourBySource": "Registrations of one source; 20 by default.",
  "limits.registrationRequestsPerMinuteByClient": "Requests to manage one registration; 60 by default.",
  "limits.fetchesPerMinuteBySource": "Fetches of clients' URLs that one source may cause; 30 by default.",
  "limits.fetchesPerMinuteByHost": "Fetches from one host; 60 by default.",

  targets: "The resource servers and partners that tokens are issued for.",
  "targets.*.kind":
    '"resource" (the default): a resource server; "partner": the authorization server of another company.',
  "targets.*.names": "The names by which requests name it, compared exactly.",
  "targets.*.owners":
    "The SPIFFE IDs of its own workloads: they may exchange tokens for it, and ask about them.",
  "targets.*.introspectors": "The client_ids of clients that may ask about its tokens beside its owners.",
  "targets.*.binding":
    'What its tokens must be bound by: "none" (the default), "certificate", "dpop", or "any" of the two.',
  "targets.*.people": "Whether clients may ask a user for access to it; false by default.",
  "targets.*.title": "Its name as users are shown it.",
  "targets.*.sentences": "By scope: what a client with it may do, as users are shown it.",
  "targets.*.scopes": "The scopes that exist at this target.",
  "targets.*.alg": "The signature algorithm of its tokens; ES256 by default.",
  "targets.*.chain": 'The actors that its tokens show: "all" (the default), or the "current" one only.',
  "targets.*.issuer": "The issuer identifier of the partner.",
  "targets.*.aliases": "Further names by which requests may name the partner.",
  "targets.*.clients": "By client_id or SPIFFE ID here: its client_id at the partner.",
  "targets.*.subjects": 'How subjects are named at the partner: "keep", { "prefix": … } or { "table": … }.',
  "targets.*.claims": "Claims about the subject that are carried over into the grant.",
  "targets.*.resources": "The APIs behind the partner that a request may name as resource.",
  policies: "The rules. A rule only allows; what no rule allows is refused.",
  "policies.*.allow": "The mode: what kind of request the rule allows.",
  "policies.*.id": "The name of the rule, which the audit trail records.",
  "policies.*.actors": "The callers by SPIFFE ID, or by a prefix that ends in /*.",
  "policies.*.clients":
    "The callers by client_id, or all metadata documents of an origin (https://agents.example/*).",
  "policies.*.classes": "The callers by the class in which they registered.",
  "policies.*.targets": "The targets, each by one of its names.",
  "policies.*.scopes": "The most that is granted.",
  "policies.*.lifetimeSeconds":
    "How many seconds what it issues is valid: a token 300 by default and 3600 at most, a grant 60 and 300.",
  "policies.*.refresh": "Whether the clients may get refresh tokens of their users; false by default.",
  "policies.*.acr": "The authentication context classes of which the sign-in of the user must have one.",
  "policies.*.signInSecondsMax":
    "How many seconds ago the user may have signed in, at most; with refresh tokens, also at each refresh.",
  "policies.*.pushed":
    "Whether the client has to push its authorization request (RFC 9126); false by default.",
  "policies.*.maxChainDepth": "The longest chain of actors in the issued token.",
  "policies.*.subjects": "The subjects that the rule is for.",
  "policies.*.subjects.issuers": "The issuers that they come from.",
  "policies.*.subjects.subs": "Only these, by their `sub` there; without it, all.",
  "policies.*.consent":
    'How the subject agrees: "record" (a consent on record), "may_act" (the token names the actor), or "implied", which needs `acknowledge`.',
  "policies.*.askUser":
    "Whether a refused agent gets a link at which the user can give the consent that alone is missing; false by default.",
  "policies.*.acknowledge": 'For "implied" consent: "subjects-not-asked".',
  "policies.*.subjectToken":
    "What a subject token must have to be exchanged: one of `audiences`, or one of `scopes`.",
  "policies.*.subjectToken.audiences": 'Audiences; "self" stands for every target that the actor owns.',
  "policies.*.subjectToken.scopes": "Scopes.",
  "policies.*.boundSubject":
    'Which callers may exchange a bound token: "proof" (the default), those with its key; "audience", also the target it is for.',
  "policies.*.unbound": "Whether an unbound token may come out of a bound one; false by default.",
  "policies.*.issues": 'What the rule issues: "access_token" (the default), or "grant" for a partner.',
  "policies.*.idJagSubjects":
    "The kinds of subject token for which an ID-JAG is issued; ID tokens by default.",
  drafts: "Every Internet-Draft in use, by the revision that this version follows.",
};
