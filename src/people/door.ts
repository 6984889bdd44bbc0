/**
 * The door of the people's wing: sign-in, consent, codes, refresh tokens and the pages for them. The trunk imports this
 * file alone, and only when `signIn` is first configured, so a process without it loads nothing of the wing.
 */
import type { Store } from "../adapters/store/store.ts";
import type { Handler } from "../http/handler.ts";
import type { OpenPeople } from "../http/people.ts";
import type { LentPorts } from "../ports.ts";
import type { ShortLivedRows } from "../ports-people.ts";
import { makeFormTokens } from "./adapters/form-tokens.ts";
import { makePolls } from "./adapters/polls.ts";
import { openProviders, type ProviderOptions } from "./adapters/providers.ts";
import { makeProviderSecrets, makeWaiting, successors } from "./adapters/sealed.ts";
import { grantsOf } from "./flows/grants.ts";
import { accountEndpoint, takeBackEndpoint } from "./http/account.ts";
import { askEndpoint, decideAskEndpoint } from "./http/ask.ts";
import { authorizeEndpoint, decideEndpoint, reviewEndpoint } from "./http/authorize.ts";
import { backchannelLogoutEndpoint } from "./http/backchannel-logout.ts";
import { homeEndpoint, unknownEndpoint } from "./http/home.ts";
import { logoEndpoint } from "./http/logo.ts";
import { dressPages } from "./http/page-answers.ts";
import { pushEndpoint } from "./http/par.ts";
import { providerKeysEndpoint } from "./http/provider-keys.ts";
import { callbackEndpoint, signedOutEndpoint, signInEndpoint, signOutEndpoint } from "./http/sign-in.ts";
import type { OwnPorts, PeoplePorts } from "./ports.ts";
import type { ShortLivedBodies } from "./records.ts";

// What commands need for looking at a provider.
export { lookAtProvider } from "./adapters/providers.ts";
export { describeMetadataFailure, parseProviderMetadata, providerMetadataUrl } from "./spec/oidc.ts";

type PeopleOptions = ProviderOptions & {
  store: Pick<Store, "shortLived" | "pendingConsents" | "rechecks">;
};

export function openPeople(options: PeopleOptions): OpenPeople {
  const { store, encryptionKeys } = options;
  const providers = openProviders(options);
  const own: OwnPorts = {
    shortLived: store.shortLived as ShortLivedRows<ShortLivedBodies>,
    pendingConsents: store.pendingConsents,
    rechecks: store.rechecks,
    providerSecrets: makeProviderSecrets(encryptionKeys),
    waiting: makeWaiting(encryptionKeys),
    formTokens: makeFormTokens(encryptionKeys),
    successors,
    providers,
    polls: makePolls(options.clock),
    timers: options.timers,
  };
  const at = (endpoint: (ports: PeoplePorts) => Handler) => (ports: LentPorts) =>
    endpoint({ ...ports, ...own });
  return {
    ...grantsOf(own),
    endpoints: {
      home: at(homeEndpoint),
      logo: at(logoEndpoint),
      unknown: at(unknownEndpoint),
      authorize: at(authorizeEndpoint),
      review: at(reviewEndpoint),
      decide: at(decideEndpoint),
      ask: at(askEndpoint),
      decideAsk: at(decideAskEndpoint),
      push: at(pushEndpoint),
      signIn: at(signInEndpoint),
      callback: at(callbackEndpoint),
      signOut: at(signOutEndpoint),
      signedOut: at(signedOutEndpoint),
      account: at(accountEndpoint),
      takeBack: at(takeBackEndpoint),
      backchannelLogout: at(backchannelLogoutEndpoint),
      providerKeys: at(providerKeysEndpoint),
    },
    dress: dressPages,
    configure({ signIn }) {
      providers.configure(signIn?.providers ?? new Map());
    },
    stop: providers.stop,
  };
}
