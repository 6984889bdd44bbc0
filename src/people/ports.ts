/** Interfaces only: what sign-in, consent, refresh tokens and the pages need from the outside world. */
import type { Ports } from "../ports.ts";

export type PeoplePorts = Ports;
