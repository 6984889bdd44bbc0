/** The texts of the pages in German. */
import { html } from "../../spec/html.ts";
import type { Texts } from "./texts.ts";
import { timed } from "./texts-en.ts";

const count = (number: number, one: string, several: string): string =>
  `${number} ${number === 1 ? one : several}`;
/** Numbers up to twelve are spelled out. */
const SPELLED = "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split(" ");
const counted = (number: number, one: string, several: string): string =>
  count(number, one, several).replace(/^\d+/, (digits) => SPELLED[Number(digits)] ?? digits);
const whom = (number: number, one: string, several: string): string =>
  counted(number, one, several).replace(/^ein /, "einen ");
const inMinutes = (minutes: number): string => count(minutes, "Minute", "Minuten");
const inHours = (hours: number): string => count(hours, "Stunde", "Stunden");
const inDays = (days: number): string => count(days, "Tag", "Tage");

export const de: Texts = {
  language: "de",
  consentTitle: (client) => `${client} erlauben?`,
  consentHeading: (client) => html`${client} <span>möchte Zugriff</span>`,
  unverifiedClient: "Ein ungeprüftes Programm",
  claimedName: (name) => html`Es nennt sich „${name}“.`,
  reasonGiven: (words) => html`<span class="hint">Seine Begründung, mit eigenen Worten:</span> „${words}“`,
  operatorSays: (operator, words) => html`${operator} sagt dazu: ${words}`,
  technicalName: "ID:",
  notDescribed: (operator) => html`${operator} hat ihn nicht beschrieben.`,
  passedOn: (first, others) =>
    html`${first} gab dies weiter an ${others.map((one, index) => html`${index === 0 ? "" : ", dann an "}${one}`)}.`,
  passedThrough: (agents) => html`Dies wurde über ${counted(agents, "Agenten", "Agenten")} weitergegeben.`,
  askHeading: (agent) => html`${agent} <span>möchte für Sie handeln</span>`,
  askWhy: "Lehnen Sie ab, wenn Sie unsicher sind.",
  selfRegistered: (date) => `Am ${date} selbst registriert, Name ungeprüft.`,
  loopback: "Die Antwort geht an diesen Computer. Jedes Programm hier könnte sie lesen.",
  redirectDiffers: (redirect, client) => html`Die Antwort geht an ${redirect}, nicht an ${client}.`,
  confirm: "Das habe ich eben selbst begonnen",
  unconfirmedTitle: "Ein Häkchen fehlt",
  problems: {
    unconfirmed: {
      title: "Ein Häkchen fehlt",
      text: (_target) =>
        html`Es ist noch nichts entschieden. Kreuzen Sie „Das habe ich eben selbst begonnen“ an, wenn das stimmt.`,
    },
    nothing_ticked: {
      title: "Nichts ist angekreuzt",
      text: (target) =>
        html`Es ist noch nichts entschieden. Kreuzen Sie bei ${target} mindestens ein Recht an und wählen Sie dann „Erlauben“, oder wählen Sie „Ablehnen“.`,
    },
    limit_not_ticked: {
      title: "Eine Grenze fehlt",
      text: (_target) =>
        html`Es ist noch nichts entschieden. Kreuzen Sie von jeder Art mindestens eine Grenze an, und prüfen Sie noch einmal, was Sie erlauben.`,
    },
    agent_gets_nothing: {
      title: "Ein Agent erhielte nichts",
      text: (_target) =>
        html`Es ist noch nichts entschieden. Sie haben einen Agenten angekreuzt, aber nichts von dem, was er erhalten kann: Kreuzen Sie auch davon etwas an, oder lassen Sie den Agenten weg.`,
    },
  },
  refusedBefore:
    "Sie haben das abgelehnt. Sie können es noch erlauben, solange kein Agent davon erfahren hat.",
  signedInAs: "Angemeldet als",
  notYou: "Nicht Sie?",
  canTakeBack: "Jederzeit in Ihrem Konto rücknehmbar.",
  withAllow: "„Erlauben“ bedeutet auch:",
  timeLeft: (minutes) => `Noch ${inMinutes(minutes)} Zeit.`,
  moreTime: "Mehr Zeit",
  details: "Einzelheiten und technische Namen",
  lasts: (end) => html`Gilt bis ${end}.`,
  keptToo: (what, before) =>
    html`Was Sie ihm schon erlaubt haben, endet dann auch${before === undefined ? "" : html` (bisher: ${before})`}: ${what}.`,
  nearDays: new Map([
    [-1, "gestern"],
    [0, "heute"],
    [1, "morgen"],
  ]),
  inDays: (days) => `noch ${inDays(days)}`,
  inTime: (hours, minutes) => `noch ${[...timed(hours, "h"), ...timed(minutes, "min")].join(" ")}`,
  goesOnFor: "Arbeitet ohne Rückfrage weiter für",
  hours: inHours,
  goOnWithoutMe: ({ days, idleDays, hours, visitHours }) =>
    `${inDays(days)} statt ${inHours(hours)} ohne Rückfrage weiterarbeiten, wenn es mindestens alle ${inDays(idleDays)} benutzt wird${visitHours === undefined ? "" : ` und Sie sich hier mindestens alle ${inHours(visitHours)} anmelden`}`,
  answerGoesTo: "Die Antwort geht an",
  onThisComputer: "auf diesem Computer",
  clientId: "Technischer Name des Programms",
  scopeNames: "Technische Namen der Rechte",
  answersFor: "Verantwortlich",
  identities: "Wer für wen arbeitet, mit technischem Namen",
  asksTo: (target) => html`Möchte bei ${target}`,
  asksForOthers: (target) => html`Für helfende Agenten, bei ${target}`,
  permissions: "Rechte",
  tickHint: "Erlaubt wird nur, was Sie ankreuzen.",
  tickHintElse: "Erlaubt wird, was Sie ankreuzen und was darunter steht.",
  tickFirst: "Kreuzen Sie an, was Sie erlauben.",
  only: "nur ",
  noAmountLimit: "Keine Betragsgrenze genannt.",
  limits: "Nur für das, was Sie hier ankreuzen",
  limitsHint: "Kreuzen Sie von jeder Art mindestens eines an.",
  unusual: "enthält ungewöhnliche Zeichen",
  bounds: {
    max: (amount) => html`bis ${amount}`,
    min: (amount) => html`mindestens ${amount}`,
  },
  quoted: (value) => html`„${value}“`,
  yes: "ja",
  no: "nein",
  everything: (counted) => `Alles ankreuzen: ${counted}`,
  boxes: {
    permissions: (number) => count(number, "Recht", "Rechte"),
    limits: (number) => count(number, "Grenze", "Grenzen"),
    agents: (number) => count(number, "Agent", "Agenten"),
    extra: (number) => count(number, "zusätzliches Recht", "zusätzliche Rechte"),
  },
  agentsFurther: (operator, named, others) => {
    const rest =
      named === 0 ? whom(others, "Agenten", "Agenten") : whom(others, "weiteren Agenten", "weitere Agenten");
    const all = [...(named === 0 ? [] : [named === 1 ? "ihn" : "sie"]), ...(others === 0 ? [] : [rest])];
    return html`${operator} lässt ${all.join(" und ")} ohne Rückfrage tun, was Sie ankreuzen.`;
  },
  refuse: "Ablehnen",
  allow: "Erlauben",
  signInTitle: "Anmelden",
  signInHint: "Wo haben Sie Ihr Konto?",
  goOn: "Fortfahren",
  signOut: "Abmelden",
  signOutAt: (provider) => html`Auch bei ${provider} abmelden`,
  backTo: (host) => html`Zurück zu ${host}`,
  accountTitle: "Ihr Konto",
  forSupport: "Supportnummer:",
  askedHeading: "Offene Anfragen",
  lookAndDecide: "Ansehen und entscheiden",
  weekHeading: "Die letzten sieben Tage",
  weekTold: (acts, agents) =>
    `Zugang in Ihrem Namen: ${acts}-mal, für ${whom(agents, "Agenten", "Agenten")}.`,
  weekNone: "Zugang in Ihrem Namen: nie.",
  weekRefused: (times) => `Abgelehnt: ${times}-mal.`,
  weekCut: "Gezählt sind nur die neuesten Einträge.",
  jobTitle: (words) => html`„${words}“`,
  jobInProgress: (words) => html`Auftrag „${words}“`,
  inJob: "Was Sie erlauben, gilt nur für diesen Auftrag, der schon läuft, und endet mit ihm:",
  inJobElsewhere:
    "Was Sie erlauben, gilt nur für einen Auftrag und endet mit ihm. Es ist einer dieses Servers:",
  jobAsked: "Der Auftrag, in den Worten des Agenten:",
  jobAgents: "Agenten, die helfen können",
  jobAlone: "Kein anderer Agent darf helfen.",
  jobLasts: (end) => html`Nur für diesen Auftrag, bis ${end}.`,
  jobOwn: (what) => `Für sich selbst nur: ${what}. Das Übrige ist für helfende Agenten.`,
  jobPart: (what) => html`Darf nur dies, wenn oben angekreuzt: ${what}.`,
  jobPartAll: "Darf alles, was Sie oben ankreuzen.",
  jobPartNone: "Darf nichts von dem, was Sie oben ankreuzen.",
  jobPartExtra: (what) => html`<strong class="tag">Zusätzliches Recht, mit diesem Häkchen:</strong> ${what}.`,
  jobUnasked: (what) => html`Dazu kommt: ${what}.`,
  jobGoesOn: (targets) =>
    html`Jederzeit in Ihrem Konto rücknehmbar, <strong>doch ${targets} kann danach weiterarbeiten</strong>.`,
  jobTokens: (most) =>
    `Alle Agenten zusammen: höchstens ${counted(most, "Zugangsschlüssel", "Zugangsschlüssel")} zu diesen Diensten.`,
  jobDepth: (most) =>
    most === 1
      ? "Er darf nicht weitergegeben werden."
      : `Er darf über höchstens ${counted(most, "Agent", "Agenten")} hintereinander weitergegeben werden.`,
  jobWithout: (targets) => html`Auch ohne diesen Auftrag schon erlaubt: ${targets}`,
  jobBeside: "Was es auch ohne diesen Auftrag und ohne Rückfrage darf",
  jobBesideEnds:
    "Das haben die Betreiber dieses Dienstes so eingestellt, und es endet nicht mit dem Auftrag. Wenden Sie sich an sie, wenn es enden soll.",
  jobEnds: (when) => html`Endet von selbst: ${when}.`,
  mayBeside: (target) => html`Darf bei ${target}, auch ohne diesen Auftrag`,
  byOperator: (operator) => html`Das kann nur ${operator} beenden.`,
  keepsOwn: (agent, targets) =>
    html`Nach dem Auftrag bleibt, was ${agent} selbst bei ${targets} darf, siehe unten.`,
  stoppedHeading: "Gerade gestoppt",
  stopped: "Er ist beendet, und für ihn gibt es keinen Zugang mehr.",
  stillAccepted: (target, until) =>
    html`Bei ${target} kann Zugang, den es schon gibt, noch bis ${until} gelten.`,
  stopJob: "Diesen Auftrag stoppen",
  stopJobQuestion: "Diesen Auftrag jetzt stoppen? Der Zugang dafür endet sofort, alles andere bleibt.",
  stopJobYes: "Ja, stoppen",
  allowedHeading: "Wer für Sie handeln darf",
  nothingAllowed: "Sie erlauben zurzeit keinem Agenten etwas.",
  takeBackHint: (minutes) =>
    `Was Sie zurücknehmen, endet hier sofort, mit allem, was daraus entstanden ist. Ein Dienst, der Zugänge selbst prüft, bemerkt es spätestens nach ${inMinutes(minutes)}.`,
  mayAt: (target) => html`Darf bei ${target}`,
  allowedSince: "Erlaubt seit",
  givesNothing: (targets) => html`Zurzeit wirkungslos, denn das wird hier nicht mehr angeboten: ${targets}.`,
  untilTakenBack: "Gilt, bis Sie es zurücknehmen.",
  lastUsed: (when) => html`Zuletzt benutzt: ${when}.`,
  lastRefused: (when) => html`Zuletzt abgelehnt: ${when}.`,
  noUse: "Keine Nutzung verzeichnet.",
  noUseSince: (date) => `Keine Nutzung verzeichnet seit ${date}.`,
  goesOn: "Arbeitet weiter, während Sie weg sind",
  goesOnUntil: (since, used, until) => `Seit ${since}, zuletzt benutzt am ${used}, bis ${until}.`,
  goesOnIdle: (date) => `Unbenutzt endet es am ${date}.`,
  reused: (date) =>
    `Am ${date} wurde dieser Agent abgemeldet, weil sein Zugang von zwei Stellen aus benutzt wurde: Eine Kopie könnte gestohlen sein. Was Sie ihm erlaubt haben, gilt weiter. Wenn Sie ihn benutzen, melden Sie sich dort neu an; wenn nicht, nehmen Sie zurück, was Sie erlaubt haben.`,
  renewedElsewhere:
    "Derselbe Zugang dieses Agenten wurde binnen Sekunden aus zwei Netzen benutzt. Vielleicht haben Sie das Netz gewechselt, vielleicht ist eine Kopie gestohlen. Wenn Sie den Grund nicht kennen, nehmen Sie zurück, was Sie erlaubt haben.",
  mayActFurther: "Diese können ohne Rückfrage für Sie handeln",
  more: "Einzelheiten",
  takeBack: "Zurücknehmen",
  takeBackQuestion: "Jetzt zurücknehmen? Es endet sofort.",
  takeBackYes: "Ja, zurücknehmen",
  takeAllConfirm: "Ja, alles, was ich Agenten erlaubt habe",
  takeAll: "Alles zurücknehmen und alle Aufträge stoppen",
  takeAllLeaves: (operator) => html`Es bleibt, was nur ${operator} beenden kann:`,
  takeAllHint: "Nimmt alle Rechte aller Agenten zurück und stoppt alle Aufträge. Offene Anfragen bleiben.",
  takeAllUnconfirmed:
    "Kreuzen Sie „Ja, alles, was ich Agenten erlaubt habe“ an, und wählen Sie noch einmal. Es wurde nichts zurückgenommen.",
  moreAllowed: "Weitere Erlaubnisse",
  firstAllowed: "Erlaubnisse von Anfang an",
  doneHeading: "Was in Ihrem Namen geschah",
  doneHint: (zone) => `Das Neueste zuerst. Zeiten: ${zone ?? "UTC"}.`,
  entries: (number) => count(number, "Eintrag", "Einträge"),
  refusedFor: {
    not_allowed: "Das haben Sie nicht erlaubt.",
    over: "Ihre Erlaubnis galt nicht mehr.",
    sign_in: "Dafür müssten Sie sich neu anmelden.",
    rules: "Die Regeln dieses Dienstes lassen es nicht zu.",
    faulty: "Die Anfrage war nicht in Ordnung.",
  },
  times: (times) => `${times}-mal.`,
  nothingDone: "Es ist nichts verzeichnet.",
  daysLegend: "Nach Datum filtern",
  firstDay: "Erster Tag",
  lastDay: "Letzter Tag",
  showDays: "Zeigen",
  dayProblems: {
    day: {
      title: "Ein Tag ist ungültig",
      text: "Schreiben Sie jeden Tag wie 2027-01-31, oder lassen Sie ihn leer.",
    },
    days_turned: {
      title: "Der erste Tag liegt nach dem letzten",
      text: "Wählen Sie einen früheren ersten oder einen späteren letzten Tag, oder lassen Sie einen leer.",
    },
  },
  older: "Ältere Einträge",
  newest: "Neueste Einträge",
  yourself: "Sie selbst",
  exactTime: "Genaue Zeit in UTC",
  toldBy: (issuer) => html`laut ${issuer}`,
  at: (target) => html`bei ${target}`,
  sorts: {
    access: "Zugang",
    gift: "Erlaubt",
    refusal: "Abgelehnt",
    ending: "Beendet",
    session: "Anmeldung",
  },
  done: {
    token_given: "Erhielt Zugang in Ihrem Namen.",
    acted: "Erhielt Zugang in Ihrem Namen.",
    acted_as_you: "Erhielt Zugang als Sie, ohne selbst genannt zu werden.",
    grant_redeemed: "Kam von einer anderen Firma mit einer Erlaubnis in Ihrem Namen und erhielt Zugang.",
    refused: "Wollte Zugang in Ihrem Namen.",
    you_refused: "Sie haben abgelehnt.",
    allowed: "Sie haben es erlaubt.",
    allowed_by_others: "Ein Administrator hat es in Ihrem Namen erlaubt.",
    taken_back: "Sie haben die Erlaubnis zurückgenommen.",
    taken_back_by_others: "Ein Administrator hat die Erlaubnis zurückgenommen.",
    job_approved: "Sie haben einen Auftrag erlaubt.",
    job_approved_by_others: "Ein Administrator hat einen Auftrag für Sie angelegt.",
    job_refused: "Sie wurden gebeten, einen Auftrag zu erlauben. Es wurde nichts dafür erlaubt.",
    job_stopped: "Sie haben einen Auftrag gestoppt.",
    job_stopped_by_operator: "Ein Administrator hat einen Auftrag gestoppt.",
    job_stopped_by_agent: "Der Agent selbst hat einen Auftrag beendet.",
    renewed_elsewhere:
      "Hat denselben Zugang binnen Sekunden aus zwei Netzen benutzt. Wenn Sie den Grund nicht kennen, nehmen Sie zurück, was Sie erlaubt haben.",
    ended: "Der Zugang von Agenten in Ihrem Namen wurde beendet.",
    signed_in: "Sie haben sich hier angemeldet.",
    signed_out: "Sie haben sich hier abgemeldet.",
  },
  notices: {
    request_invalid: {
      title: "Die Anfrage ist ungültig",
      text: "Das Programm, von dem Sie kommen, hat eine fehlerhafte Anfrage gestellt. Es hat nichts erhalten. Beginnen Sie dort neu. Erscheint diese Seite erneut, wenden Sie sich an den Hersteller des Programms.",
    },
    client_unknown: {
      title: "Dieses Programm ist hier unbekannt",
      text: "Das Programm, von dem Sie kommen, ist nicht registriert, oder die Seite, die es beschreibt, antwortet nicht. Es hat nichts erhalten.",
    },
    client_unreachable: {
      title: "Die Seite des Programms antwortet nicht",
      text: "Die Seite, die das Programm beschreibt, ist gerade nicht erreichbar. Das Programm hat nichts erhalten. Versuchen Sie es gleich noch einmal.",
    },
    redirect_refused: {
      title: "Die Adresse für die Antwort ist nicht registriert",
      text: "Das Programm, von dem Sie kommen, verlangt die Antwort an einer Adresse, die es nicht registriert hat. Dorthin wurde nichts gesendet.",
    },
    request_gone: {
      title: "Diese Anfrage ist abgelaufen",
      text: "Sie hat zu lange gedauert, oder Sie haben sie in einem anderen Browser begonnen. Beginnen Sie neu bei dem Programm, von dem Sie kommen.",
    },
    request_decided: {
      title: "Sie haben schon entschieden",
      text: "Diese Anfrage ist schon beantwortet, und es geschieht nichts weiter. Sie können die Seite schließen.",
    },
    sign_in_failed: {
      title: "Die Anmeldung ist nicht gelungen",
      text: "Das Programm, von dem Sie kommen, hat nichts erhalten. Sie können es noch einmal versuchen.",
    },
    sign_in_used: {
      title: "Diese Anmeldung wurde schon benutzt",
      text: "Fahren Sie mit der Anfrage fort, oder beginnen Sie neu bei dem Programm, von dem Sie kommen.",
    },
    account_disabled: {
      title: "Ihr Konto ist hier gesperrt",
      text: "Die Betreiber dieses Dienstes oder Ihre Firma haben es gesperrt. Kein Programm handelt hier für Sie, und Sie werden nichts gefragt. Wenn Sie das nicht erwarten, fragen Sie den Support Ihrer Firma, und nennen Sie die Nummer unten.",
    },
    form_refused: {
      title: "Das Formular wurde nicht angenommen",
      text: "Es kam nicht von unserer Seite, oder die Seite war veraltet. Es wurde nichts erlaubt.",
    },
    session_over: {
      title: "Sie sind nicht mehr angemeldet",
      text: "Es hat sich nichts geändert. Melden Sie sich wieder an, und wiederholen Sie, was Sie wollten.",
    },
    taken_back_before: {
      title: "Das haben Sie schon zurückgenommen",
      text: "Es ist nicht mehr erlaubt. Sie müssen nichts weiter tun.",
    },
    job_stopped_before: {
      title: "Dieser Auftrag wurde schon gestoppt",
      text: "Für ihn wird nichts mehr gegeben. Sie müssen nichts weiter tun.",
    },
    provider_down: {
      title: "Die Anmeldeseite antwortet nicht",
      text: "Die Anmeldeseite Ihrer Firma ist gerade nicht erreichbar. Versuchen Sie es gleich noch einmal.",
    },
    fault: {
      title: "Hier ist etwas schiefgegangen",
      text: "Der Fehler liegt bei uns, nicht bei Ihnen. Kein Programm hat etwas erhalten. Versuchen Sie es noch einmal. Erscheint diese Seite erneut, nennen Sie dem Support die Nummer unten.",
    },
    busy: {
      title: "Zu viele Anfragen",
      text: "Der Dienst ist gerade überlastet. Versuchen Sie es gleich noch einmal.",
    },
    unavailable: {
      title: "Gerade ist keine Antwort möglich",
      text: "Vielleicht wurde gespeichert, was Sie getan haben, vielleicht nicht. Wiederholen Sie es gleich noch einmal: Es geschieht nicht doppelt.",
    },
    ask_gone: {
      title: "Hier ist nichts zu entscheiden",
      text: "Der Link ist für eine andere Person, oder seine Zeit ist um. Es wurde nichts erlaubt. Wenn Sie eine Frage erwarten, lassen Sie den Agenten es noch einmal versuchen, und melden Sie sich als die Person an, für die er arbeitet.",
    },
    job_over: {
      title: "Dieser Auftrag ist beendet",
      text: "Er wurde gestoppt, oder seine Zeit ist um, und für ihn kann nichts mehr erlaubt werden. Hier wurde nichts erlaubt. Sie müssen nichts weiter tun.",
    },
    jobs_too_many: {
      title: "Dieser Agent hat zu viele Aufträge",
      text: "Für ihn laufen schon so viele Aufträge, wie für Sie oder insgesamt höchstens zulässig sind. Es wurde nichts erlaubt. Stoppen Sie einen in Ihrem Konto, und fahren Sie dann hier fort. Steht dort keiner von ihm, versuchen Sie es später noch einmal.",
    },
    ask_allowed: {
      title: "Sie haben es erlaubt",
      text: "Der Agent arbeitet weiter, sobald er es noch einmal versucht. Sie können die Seite schließen.",
    },
    ask_refused: {
      title: "Sie haben abgelehnt",
      text: "Der Agent hat nichts erhalten. Sie können die Seite schließen. Wenn das ein Versehen war, fahren Sie fort: Sie können es noch erlauben, solange kein Agent davon erfahren hat.",
    },
    ask_refused_before: {
      title: "Das haben Sie abgelehnt",
      text: "Ein Agent hat davon erfahren, und Ihre Antwort gilt. Er hat nichts erhalten. Wenn Sie es doch erlauben möchten, lassen Sie den Agenten in einer Stunde noch einmal fragen.",
    },
    home: {
      title: "Erlaubnisse für Programme und Agenten",
      text: "Hier entscheiden Sie, welche Programme und Agenten für Sie handeln dürfen, und sehen, was sie getan haben. Wenn einer von ihnen Sie braucht, leitet er Sie hierher. Was Sie erlaubt haben, steht in Ihrem Konto.",
    },
    page_unknown: {
      title: "Diese Seite gibt es nicht",
      text: "Unter dieser Adresse gibt es hier nichts. Vielleicht ist sie falsch geschrieben oder beim Kopieren abgeschnitten worden.",
    },
    signed_out: {
      title: "Sie sind abgemeldet",
      text: "Was Sie Programmen erlaubt haben, bleibt erlaubt. Bei Ihrer Firma sind Sie vielleicht noch angemeldet.",
    },
  },
};
