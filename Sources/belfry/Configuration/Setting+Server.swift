import HubCore
import HubServer
import HubStorage

/// The settings of the server. Each is declared here and listed in ``all``; reading, help, the
/// example file and the tables of the documentation follow.
extension Setting {
  static let address = Setting(
    "address", \.address, .text, placeholder: "IP",
    help: "the address to listen on; 0.0.0.0 or :: for every interface",
    example: "the address to listen on; 0.0.0.0 or :: for every interface")
  static let port = Setting(
    "port", \.port, .integer(0...65535), placeholder: "N",
    help: "the TCP port to listen on; 0 picks a free one",
    example: "TCP port for HTTP; 0 picks a free one")
  static let data = Setting(
    key: "data", kind: .text, standard: usual.data.path, placeholder: "DIR",
    help: "the directory that holds the database and the master key; made if missing",
    example: "directory of the database and the master key")
  static let database = Setting(
    "database", \.database, .text, placeholder: "URL",
    help:
      "a PostgreSQL database instead of a file: postgresql://user@host/database; all servers with "
      + "the same database form one hub. Put its password into BELFRY_DATABASE, PGPASSWORD or the "
      + "file of PGPASSFILE",
    example: "PostgreSQL in place of a file: \"postgresql://belfry@db/belfry\"")
  static let databaseSlots = Setting(
    key: "databaseSlots", kind: .integer(1...256), standard: "16", placeholder: "N",
    help:
      "the number of parts that the devices in a new PostgreSQL database are divided into, which "
      + "is how many nodes can work on one broadcast: a power of two, fixed from then on",
    example: "parts of a new PostgreSQL database; a power of two, then fixed")
  static let databaseLease = Setting(
    "databaseLease", \.databaseLease, .times(1, 2...60), placeholder: "SECONDS",
    help:
      "for tests: after so long without a heartbeat in the PostgreSQL database other nodes take "
      + "over this one's work; the documentation assumes 10",
    example: "for tests: seconds without a heartbeat until others take a node's work")
  static let upgradeCopy = Setting(
    "upgradeCopy", \.storage.keepsUpgradeCopy, .onOff, placeholder: "WORD",
    help:
      "off makes no copy of a database file before a newer belfry upgrades it; with a copy that "
      + "takes free disk of twice the file's size",
    example: "copy the database file before a newer belfry upgrades it")
  static let namespace = Setting(
    "namespace", \.namespace, .text, placeholder: "NAME",
    help: "the namespace's name, if not the first part of the host that clients use",
    example: "its name; by default the first part of the host clients use")
  static let publicNames = Setting(
    "publicNames", \.publicNames, .list, placeholder: "HOST,…",
    help: "host names that clients use to reach a proxy in front; tokens for them are accepted",
    example: "host names that clients use to reach a proxy in front")
  static let publicScheme = Setting(
    "publicScheme", \.publicScheme, .choice(["http", "https"]), placeholder: "WORD",
    help: "the scheme of URLs in replies: https if a proxy in front speaks TLS; the default is "
      + "that of the request",
    example: "\"https\" if a proxy in front speaks TLS: for URLs in replies")
  static let masterKey = Setting(
    "masterKey", \.masterKey, .text, placeholder: "BASE64",
    help: "32 bytes that seal secrets at rest (while they are replaced: the new key, a comma, the "
      + "old); without it the file master.key in the data directory, made on first start",
    example: "32 bytes as base64; better in BELFRY_MASTER_KEY. Default: a file", isSecret: true)
  static let trust = Setting(
    key: "trust", kind: .list, standard: nil, placeholder: "FILE,…",
    help: "PEM files of certificate authorities to trust besides the system's when the hub calls "
      + "a push service or the OpenID provider",
    example: "PEM files of authorities trusted beside the system's")
  static let channelHosts = Setting(
    "channelHosts", \.channelHosts, .list, placeholder: "HOST,…",
    help: "hosts that the channel addresses of devices (WNS, browsers) may name beside the "
      + "vendors' own: push.example.com, or .example.com for all below it; these may also be in "
      + "a private network, which no other may",
    example: "hosts that channels may name beside the vendors'; \".example.com\"")
  static let webPushHosts = Setting(
    "webPushHosts", \.webPushHosts, .word, placeholder: "WORD",
    help: "public lets Web Push subscriptions name any host, on port 443 and at public addresses, "
      + "such as the push servers of UnifiedPush; vendors only those of the browsers' vendors and "
      + "channelHosts",
    example: "\"public\" lets Web Push subscriptions name any public host")
  static let serviceHosts = Setting(
    "serviceHosts", \.serviceHosts, .list, placeholder: "HOST,…",
    help: "hosts that credentials may name as a push service or its token service beside the "
      + "vendors' own, such as a stand-in's: push.example.com, or .example.com for all below it; "
      + "these may also be in a private network, which no other may",
    example: "hosts that credentials may name beside the vendors', such as a stand-in's")
  static let pushConnections = Setting(
    "pushConnections", \.pushConnections, .integer(1...1024), placeholder: "N",
    help:
      "the maximum number of connections of one credential to a push service over HTTP/1.1; the "
      + "default is the service's own, from 32 to 64",
    example: "connections of a credential over HTTP/1.1; default: 32 to 64, by service")
  static let migrateGCM = Setting(
    "migrateGcm", \.migratesGCM, .flag,
    help: "reach devices that registered for GCM, which has ended, through the hub's FCM v1 "
      + "credential",
    example: "reach devices of GCM through the hub's FCM v1 credential")
  static let strictRetired = Setting(
    "strictRetired", \.refusesRetired, .flag,
    help: "refuse devices of MPNS and GCM, which have ended, instead of keeping them",
    example: "refuse devices of MPNS and GCM, which have ended")
  static let jobHosts = Setting(
    "jobHosts", \.jobHosts, .list, placeholder: "HOST,…",
    help: "hosts that import and export jobs may fetch from and write to: host, host:port or "
      + "*.suffix, such as *.blob.core.windows.net; the default is none",
    example: "hosts that import and export jobs may reach: host, host:port, *.suffix")
  static let jobDirectory = Setting(
    "jobDirectory", \.jobDirectory, .text, placeholder: "DIR",
    help: "the directory that file: URIs of import and export jobs must point into; without it "
      + "they are refused",
    example: "directory for the file: URIs of jobs")
  static let portal = Setting(
    "portal", \.portal, .onOff, placeholder: "WORD",
    help: "off does not serve the portal, /$portal/",
    example: "\"off\" does not serve /$portal/")
  static let bodyLimit = Setting(
    "bodyLimit", \.bodyLimit, .integer(1024...16_777_216), placeholder: "BYTES",
    help: "the maximum size of a request body; larger ones get 413",
    example: "the largest request body, in bytes")
  static let compatibility = Setting(
    "compatibility", \.compatibility, .word, placeholder: "WORD",
    help: "strict keeps the original's limits (20 tags in an expression, 6 with && or !; 1000 "
      + "devices in a batch; schedules up to 7 days ahead), extended widens them (1000 and 200 "
      + "tags; 10000 devices; 366 days)",
    example: "\"strict\" keeps the original's limits")
  static let connectionLimit = Setting(
    "connectionLimit", \.connectionLimit, .integer(1...1_000_000), placeholder: "N",
    help: "the maximum number of client connections, over HTTP and HTTPS together; for one more, "
      + "idle connections and incomplete requests are closed",
    example: "client connections at a time")
  static let connectionsPerAddress = Setting(
    "connectionsPerAddress", \.connectionsPerAddress, .integer(0...1_000_000), placeholder: "N",
    help: "the maximum number of connections of one client address, except this machine's own; "
      + "0 is a quarter of connectionLimit",
    example: "connections of one address; 0 is a quarter of connectionLimit")
  static let trustedProxies = Setting(
    key: "trustedProxies", kind: .list, standard: nil, placeholder: "CIDR,…",
    help:
      "addresses and networks of proxies, such as 10.0.0.0/8, whose X-Forwarded-For names the "
      + "client; from others the header is ignored",
    example: "networks of proxies whose X-Forwarded-For is trusted: \"10.0.0.0/8\"")
  static let http2Connections = Setting(
    "http2Connections", \.http2Connections, .integer(1...64), placeholder: "N",
    help:
      "the maximum number of connections to APNs under one credential; the hub starts with one and opens more while the service's limit on "
      + "concurrent pushes is the bottleneck",
    example: "maximum of a credential to APNs; the hub starts with one")
  static let requestTimeout = Setting(
    "requestTimeout", \.requestTimeout, .seconds(1...3600), placeholder: "SECONDS",
    help: "how long a client may take to send one request",
    example: "seconds a client may take to send a request")
  static let shutdownTimeout = Setting(
    key: "shutdownTimeout", kind: .integer(0...3600), standard: "20", placeholder: "SECONDS",
    help: "how long requests and pages in flight may take to finish after SIGTERM",
    example: "seconds for work in flight after SIGTERM")

  static let keepOutcomes = Setting(
    "keepOutcomes", \.keepOutcomes, .word, placeholder: "WORD",
    help: "which outcomes are kept device by device: none, failures or all (all costs a row for "
      + "every push)",
    example: "which outcomes are kept device by device: \"none\", \"failures\" or \"all\"")
  static let keepOutcomesDays = Setting(
    "keepOutcomesDays", \.retention.outcomes.lifetime, .times(86_400, 1...3650),
    placeholder: "DAYS",
    help: "how long they are kept",
    example: "days after the last outcome of a notification")
  static let keepOutcomesLimit = Setting(
    "keepOutcomesLimit", \.retention.outcomes.limit, .integer(0...1_000_000_000), placeholder: "N",
    help: "how many are kept (some 100 bytes each); those of the oldest notifications are deleted "
      + "first",
    example: "maximum number for all notifications, some 100 bytes each")

  static let tagsPerInstallation = Setting(
    "tagsPerInstallation", \.tagsPerInstallation, .integer(1...100_000), placeholder: "N",
    help: "the maximum number of different tags of one installation, including its templates and "
      + "tiles; a device with more gets 400. The default is 120, with --compatibility strict 60",
    example: "different tags of one device, its templates included; default 120; above, 400")
  static let tagsPerHub = Setting(
    "tagsPerHub", \.storage.tagsPerHub, .integer(1...1_000_000_000), placeholder: "N",
    help: "the maximum number of different tags in one hub; a device with a new one gets 403",
    example: "different tags that a hub keeps; above, a write with a new one is 403")
  static let templatesPerHub = Setting(
    "templatesPerHub", \.storage.templatesPerHub, .integer(1...1_000_000_000), placeholder: "N",
    help: "the maximum number of different templates in one hub; a device with a new one gets 403",
    example: "different template bodies")

  static let keepNotificationsDays = Setting(
    "keepNotificationsDays", \.retention.notifications, .days(upTo: 3650), placeholder: "DAYS",
    help: "how long a notification is kept after its end, with its payload and counts; 0 keeps it "
      + "forever",
    example: "days that a notification is kept after its end, with its counts; 0: forever")

  static let keepMessageText = Setting(
    "keepMessageText", \.retention.texts, .texts, placeholder: "TIME",
    help: "how long the text of a message, and with it the payload, is kept after the "
      + "notification's end: a time such as 30d or 12h, notification for as long as the "
      + "notification itself, or off, which also shows it to nobody before",
    example: "a message's text after its end: \"30d\", \"off\", or as long as the notification")

  static let keepActivityDays = Setting(
    "keepActivityDays", \.retention.activity.lifetime, .days(upTo: 3650), placeholder: "DAYS",
    help:
      "how long the activity log is kept: who has changed or sent what; 0 keeps it forever, up "
      + "to keepActivityLimit",
    example: "days that the activity log is kept: who changed or sent what; 0: forever")
  static let keepActivityLimit = Setting(
    "keepActivityLimit", \.retention.activity.limit, .integer(0...1_000_000_000), placeholder: "N",
    help: "how many of its lines are kept (some 250 bytes each); those of the hub with the most "
      + "are deleted first",
    example: "maximum number of its lines, some 250 bytes each")

  static let operators = Setting(
    "operators", \.operatorFile, .text, placeholder: "FILE",
    help:
      "the file with the operators of the portal, as `belfry operator add` writes it; the default "
      + "is the file operators in the data directory",
    example: "file of the portal's operators; default: operators in the data directory")
  static let operatorIdleMinutes = Setting(
    "operatorIdleMinutes", \.signIn.idle, .times(60, 1...1440), placeholder: "N",
    help: "minutes without a request after which an operator has to sign in again; in any case "
      + "after twelve hours",
    example: "minutes without a request until operators have to sign in again")

  static let oidcIssuer = Setting(
    key: "oidcIssuer", kind: .text, standard: nil, placeholder: "URL",
    help: "the OpenID provider where operators may sign in, exactly as it writes its issuer; it "
      + "must allow sign-ins to return to https://HOST/$portal/oidc/callback",
    example: "the OpenID provider where operators sign in, as it writes its issuer")
  static let oidcClient = Setting(
    key: "oidcClient", kind: .text, standard: nil, placeholder: "ID",
    help: "this server's client id at the OpenID provider",
    example: "this server's client id at the OpenID provider")
  static let oidcSecretFile = Setting(
    key: "oidcSecretFile", kind: .text, standard: nil, placeholder: "FILE",
    help: "the file with the client's secret; without it the provider must accept a public client",
    example: "the file with the client's secret, if it has one")
  static let oidcName = Setting(
    key: "oidcName", kind: .text, standard: nil, placeholder: "TEXT",
    help: "the provider's name on the sign-in button of the portal",
    example: "the provider's name on the sign-in button")

  static let deadHandlePercent = Setting(
    "deadHandlePercent", \.deadHandleShare, .percent, placeholder: "N",
    help: "the percentage of a push service's latest answers that may report dead handles before "
      + "the hub stops removing devices; 100 never stops",
    example: "above this share of dead handles none is removed; 100 never stops")

  static let logFormat = Setting(
    key: "logFormat", kind: .choice(LogFormat.allCases.map(\.rawValue)),
    standard: LogFormat.text.rawValue, placeholder: "WORD",
    help: "the format of events on standard error, one a line: text or json",
    example: "events on standard error: \"text\" or \"json\"")
  static let logLevel = Setting(
    key: "logLevel", kind: .choice(LogLevel.allCases.map(\.rawValue)),
    standard: LogLevel.info.rawValue, placeholder: "WORD",
    help: "the lowest level that is logged: debug (every request), info, warning or error",
    example: "\"debug\" (every request), \"info\", \"warning\" or \"error\"")
  static let metricsPort = Setting(
    "metricsPort", \.metricsPort, .integer(0...65535), placeholder: "N",
    help: "a separate TCP port for /metrics; 0 picks a free one; the default is none",
    example: "a separate port for /metrics; 0 picks a free one")
  static let metricsAddress = Setting(
    "metricsAddress", \.metricsAddress, .text, placeholder: "IP",
    help: "the address of that port",
    example: "the address of that port")
  static let metricsToken = Setting(
    "metricsToken", \.metricsToken, .text, placeholder: "TEXT",
    help: "anyone who presents this as a bearer token may read /metrics, also on the hub's port",
    example: "a bearer token for /metrics; better in BELFRY_METRICS_TOKEN", isSecret: true)

  static let tlsPort = Setting(
    key: "tlsPort", kind: .integer(0...65535), standard: "8443", placeholder: "N",
    help: "the TCP port for HTTPS, once it has a certificate; 0 picks a free one",
    example: "TCP port for HTTPS, once there is a certificate")
  static let tlsCertificate = Setting(
    key: "tlsCertificate", kind: .text, standard: nil, placeholder: "FILE",
    help: "PEM of the certificate for HTTPS, followed by its issuers; reloaded when it changes",
    example: "PEM file: the certificate, followed by its issuers")
  static let tlsKey = Setting(
    key: "tlsKey", kind: .text, standard: nil, placeholder: "FILE",
    help: "PEM of the certificate's private key, without a password",
    example: "PEM file: its private key")
  static let tlsSelfSigned = Setting(
    key: "tlsSelfSigned", kind: .flag, standard: "false", placeholder: "",
    help: "serve HTTPS with a certificate of the server's own authority; clients must trust "
      + "tls-ca.pem in the data directory",
    example: "HTTPS with an authority of the server's own (tls-ca.pem)")

  /// Every setting of the server, in the order of the documentation.
  static let all: [Setting] = [
    address, port, tlsPort, tlsCertificate, tlsKey, tlsSelfSigned, data, database, databaseSlots,
    databaseLease, upgradeCopy, namespace, publicNames, publicScheme,
    masterKey, trust, channelHosts, webPushHosts, serviceHosts, pushConnections, http2Connections,
    migrateGCM,
    strictRetired, jobHosts, jobDirectory, portal, compatibility, bodyLimit, connectionLimit,
    connectionsPerAddress, trustedProxies, requestTimeout, shutdownTimeout, keepOutcomes,
    keepOutcomesDays, keepOutcomesLimit, keepNotificationsDays, keepMessageText,
    keepActivityDays, keepActivityLimit, operators, operatorIdleMinutes, oidcIssuer, oidcClient,
    oidcSecretFile,
    oidcName, tagsPerInstallation, tagsPerHub, templatesPerHub,
    deadHandlePercent, logFormat, logLevel,
    metricsPort, metricsAddress, metricsToken,
  ]
}
