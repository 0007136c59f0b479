import Authentication
import Foundation
import HTTPServer
import NotificationHubs
import SecurePushBackend

/// The location of a backend's data.
struct BackendStoreOptions: ParameterGroup {
  @Option("--store", "DIR", "holds users, payloads and their key") var directory = "belfry-backend"
  @Option(
    "--database", "URL",
    "keep payloads in PostgreSQL, postgresql://user@host/db (or BELFRY_BACKEND_DATABASE)",
    DatabaseAddress.reader)
  var databaseURL: String?
  @Option("--users", "FILE", "the user file (default users in the store's directory)")
  var users: String?
  private let hasDatabase: Bool
  private let hasUsers: Bool

  /// - Parameters: The options of the two that a command accepts.
  init(database: Bool = true, users: Bool = true) {
    hasDatabase = database
    hasUsers = users
  }

  var parameters: [any Parameter] {
    [_directory] + (hasDatabase ? [_databaseURL] : []) + (hasUsers ? [_users] : [])
  }

  /// The address of the database; `nil` for a file.
  func database(_ context: CommandContext) throws -> String? {
    let name = "BELFRY_BACKEND_DATABASE"
    let address = databaseURL ?? context.environment[name]
    if let fault = address.flatMap(DatabaseAddress.fault) { throw UsageError("\(name) \(fault)") }
    return try existing.postgres(address, part: .backend, option: "--store")
  }

  /// The directory of a backend, which is not created.
  private var existing: DataDirectory {
    DataDirectory(path: URL(fileURLWithPath: directory).standardizedFileURL.path)
  }

  var userFile: String { users ?? existing.path + "/users" }

  /// Opens the store of an existing backend.
  func open(_ context: CommandContext) async throws -> BackendStore {
    try await BackendRuntime.openExisting(existing, database: try database(context))
  }
}

extension Reader where Value == UserName {
  private static func typed(_ text: String) throws(UsageError) -> UserName {
    if let user = UserName(typed: text) { return user }
    throw UsageError(
      "'\(text)' cannot be a user's name: it must have 1 to 100 characters, none of them a control "
        + "character")
  }

  static let typedUser = Reader(show: \.text) { text, _ throws(UsageError) in try typed(text) }

  /// An operator: `ann`, or `subject:…` or `email:…` for a user of an OpenID provider.
  static let operatorUser = Reader(show: \.text) { text, _ throws(UsageError) in
    for kind in [UserName.Kind.subject, .email] where text.hasPrefix("\(kind.rawValue):") {
      let isGood = kind == .subject || text.contains("@")
      if isGood, let user = UserName(key: text) { return user }
      throw UsageError(
        "'\(text)' is not a user: write subject:ID or email:ADDRESS as the provider spells it, up to "
          + "about 100 characters")
    }
    return try typed(text)
  }

  /// A user of either kind: `alice`, or `subject:…`.
  static let anyUser = Reader(show: \.text) { text, _ throws(UsageError) in
    if let user = UserName(key: text) { return user }
    return try typed(text)
  }
}

struct BackendCommand: Subcommand {
  static let about = CommandHelp(
    "backend", "run the app backend: sign-in, devices of users, secure notifications",
    discussion: """
      Devices talk to it instead of to the hub, so none of them holds a key of the hub. A message is
      stored here, sealed; only its id, or the payload sealed for one device, goes through the hub.
      The hub may be Belfry's or Azure's.

      Users of the user file and users of an OpenID provider are separate. If both kinds sign in,
      write name:alice or subject:abc for --operator and in requests.

        POST, DELETE /api/token            POST /api/token/hub
        POST   /api/register?handle=H      PUT, DELETE /api/register/ID
        PUT, DELETE /api/installations/ID
        POST   /api/notifications          GET /api/notifications[/ID]
      """,
    examples: [
      "belfry backend user add alice",
      "BELFRY_CONNECTION_STRING=… belfry backend --hub news",
      "belfry backend --demo-auth",
      "belfry backend --issuer https://login.example.com --audience app --jwks keys.json",
    ])
  static let isServer = true

  let client = ClientOptions(directoryAccess: .server)
  let store = BackendStoreOptions()
  @Option("--address", "IP", "the address to listen on") var address = "127.0.0.1"
  @Option("--port", "N", "the port; 0 picks a free one", .integer(0...65535)) var port = 8090
  @Option("--certificate", "FILE", "speak HTTPS with this certificate (PEM, the chain)")
  var certificate: String?
  @Option("--key", "FILE", "the certificate's private key (PEM)") var key: String?
  @Flag("--demo-auth", "take the user's name as password, as the tutorials do: never in public")
  var isDemo
  @Option("--issuer", "URL", "take bearer tokens of this OpenID provider") var issuer: String?
  @Option("--audience", "NAME", "the audience that its tokens must have") var audience: String?
  @Option("--jwks", "URL|FILE", "its public keys") var jwks: String?
  @Option("--user-claim", "NAME", "the claim that names the user (default sub)")
  var userClaim: String?
  @Option("--clock-skew", "TIME", "how far its clock may be from ours", .time(0...3600))
  var clockSkew = 60
  @Option(repeated: "--operator", "NAME", "a user who may send to others") var operators: [String]
  @Option(
    "--trusted-proxies", "CIDR,…",
    "addresses and networks whose X-Forwarded-For is believed: 10.0.0.0/8 (or "
      + "BELFRY_TRUSTED_PROXIES)") var trustedProxies: String?
  @Option(
    "--token-lifetime", "TIME", "how long a token of POST /api/token lives", .time(60...86_400))
  var tokenLifetime = 3600
  @Option(
    "--session-lifetime", "TIME", "how long a sign-in lasts without being used",
    .time(60...31_536_000)) var sessionLifetime = 7_776_000
  @Option(
    "--listen-connection", "STRING",
    "a connection string with the right Listen alone: gives devices hub tokens by POST "
      + "/api/token/hub (or BELFRY_LISTEN_CONNECTION_STRING)") var listenConnection: String?
  @Option(
    "--expires-in", "TIME", "how long a message waits for its reader",
    .time(1...Int(BackendConfiguration().longestLifetime))) var expiresIn = 604_800
  @Option("--payload-limit", "BYTES", "the largest payload", .integer(1...131_072))
  var payloadLimit = 32_768
  @Option("--alert", "TEXT", "show this at once where the payload cannot be sealed")
  var alert: String?
  @Flag("--no-sealing", "never seal payloads into pushes: devices fetch them all") var noSealing

  private var configuration: BackendConfiguration {
    var configuration = BackendConfiguration()
    configuration.lifetime = Double(expiresIn)
    configuration.payloadLimit = payloadLimit
    configuration.alert = alert
    configuration.tokenLifetime = Double(tokenLifetime)
    configuration.sessionLifetime = Double(sessionLifetime)
    configuration.sealsPayloads = !noSealing
    return configuration
  }

  func run(in context: CommandContext) async throws {
    if (certificate == nil) != (key == nil) {
      throw UsageError("--certificate and --key belong together")
    }
    try UsageError.check(exclusive: $isDemo, store.$users)
    let signal = ShutdownSignal(within: .seconds(15), report: context.log)
    let signIn = try signIn(context)
    let access = try await client.access(.changes, in: context)
    var options = BackendRuntime.Options(
      directory: try .make(at: store.directory), signIn: signIn)
    let claim = try options.directory.claim(for: .serving)
    defer { withExtendedLifetime(claim) {} }
    options.database = try store.database(context)
    try refuseForgottenDatabase(options)
    options.address = address
    options.port = UInt16(port)
    options.configuration = configuration
    options.configuration.listening = try listening(context, access)
    try await check(access, options.configuration.listening, context)
    options.trustedProxies = try proxies(context)
    options.log = context.log
    if let certificate, let key {
      options.certificate = .files(CertificateFiles(certificate: certificate, key: key))
    } else if !["127.0.0.1", "::1", "localhost"].contains(options.address) {
      context.note(
        "warning: passwords and payloads travel in the clear; give --certificate and --key, or "
          + "put a proxy that speaks TLS in front")
    }
    let runtime = try await BackendRuntime.start(options, hub: access.client)
    try CommandResult(
      ["url": runtime.url],
      [
        "backend    \(runtime.url)  (hub \(access.hub))",
        "store      \(options.directory.path)"
          + (options.database.map { ", data in \(DatabaseAddress.shown($0))" } ?? ""),
        "Ctrl-C ends it.",
      ]
    ).print(asJSON: client.json, in: context)
    _ = await signal.wait()
    ShutdownSignal.step("requests in flight and the store")
    await runtime.stop(within: .seconds(10))
  }

  /// A key without a database file belongs to a backend in PostgreSQL; a file would be empty beside
  /// it.
  private func refuseForgottenDatabase(_ options: BackendRuntime.Options) throws {
    func has(_ part: BackupPart) -> Bool {
      FileManager.default.fileExists(atPath: "\(options.directory.path)/\(part.rawValue)")
    }
    guard options.database == nil, has(.backendKey), !has(.backend) else { return }
    throw CommandFailure(
      "\(options.directory.path) has a backend.key and no backend.sqlite: name the PostgreSQL database "
        + "that the key belongs to with --database URL, or move the key away to begin with nothing",
      exitCode: .usage)
  }

  private func listening(
    _ context: CommandContext, _ access: HubAccess
  ) throws -> BackendConfiguration.HubAccess? {
    guard
      let text = listenConnection ?? context.environment["BELFRY_LISTEN_CONNECTION_STRING"]
    else { return nil }
    let connection: ConnectionString
    do { connection = try ConnectionString(text) } catch {
      throw UsageError("--listen-connection: \(error)")
    }
    // Devices would get every right of the backend.
    guard connection.key != access.connection.key else {
      throw UsageError(
        "--listen-connection must be of a policy with the right Listen alone, not the backend's own"
      )
    }
    return BackendConfiguration.HubAccess(connectionString: connection, hub: access.hub)
  }

  /// Checks with the hub for misconfigurations that would make every request fail or give devices
  /// too many rights. A hub that does not reply may still be starting.
  private func check(
    _ access: HubAccess, _ listening: BackendConfiguration.HubAccess?,
    _ context: CommandContext
  ) async throws {
    let hub = "the hub '\(access.hub)' at \(access.connection.endpoint.url)"
    func refusal(_ reason: String) -> CommandFailure { CommandFailure(reason, exitCode: .usage) }
    func client(_ connection: ConnectionString) -> NotificationHubClient {
      NotificationHubClient(
        connectionString: connection, hub: access.hub, transport: access.transport, retry: .none)
    }
    do {
      let manager = client(access.connection)
      guard try await Self.isAllowed({ try await Self.listAll(manager) }) else {
        throw refusal(
          "\(hub) is not there, or does not take the connection string: it must be of a policy of "
            + "that hub with the right Manage")
      }
      guard let listening else { return }
      let device = client(listening.connectionString)
      let listens = try await Self.isAllowed {
        _ = try await device.registrations(channel: .handle("00")).first { _ in true }
      }
      guard listens else {
        throw refusal(
          "--listen-connection: \(hub) does not take it; it must be of a policy of that hub with the "
            + "right Listen")
      }
      let manages = try await Self.isAllowed { try await Self.listAll(device) }
      let sends = try await Self.isAllowed {
        do {
          _ = try await device.telemetry(of: "belfry-backend-check")
        } catch let error as NotificationHubError where error.kind == .notFound {}
      }
      guard !manages, !sends else {
        throw refusal(
          "--listen-connection: the policy \(listening.connectionString.keyName) has more than Listen, "
            + "and each device would get that. Make one: belfry policy create devices --rights Listen"
        )
      }
    } catch let error as NotificationHubError where error.kind == .notFound {
      throw CommandFailure(
        "\(hub) does not exist. Name another with --hub, or create it: belfry hub create "
          + access.hub,
        exitCode: .refused)
    } catch let error as NotificationHubError {
      // Each device would get all rights of that policy.
      guard listening == nil else {
        throw CommandFailure(
          "--listen-connection cannot be checked, since the hub does not answer: \(error)\nstart again "
            + "when it does, or without --listen-connection", exitCode: .unreachable)
      }
      context.note("warning: cannot check that the hub exists: \(error)")
    }
  }

  private static func listAll(_ client: NotificationHubClient) async throws {
    _ = try await client.registrations(pageSize: 1).first { _ in true }
  }

  /// - Returns: Whether the hub permits the call.
  private static func isAllowed(_ call: () async throws -> Void) async throws -> Bool {
    do {
      try await call()
      return true
    } catch let error as NotificationHubError where error.kind == .unauthorized {
      return false
    }
  }

  private func proxies(_ context: CommandContext) throws -> TrustedProxies {
    let text =
      trustedProxies ?? context.environment[Setting.trustedProxies.variable] ?? ""
    do {
      return try TrustedProxies(TextInput.list(text))
    } catch {
      throw UsageError("--trusted-proxies: \(error.description)")
    }
  }

  private func signIn(_ context: CommandContext) throws -> SignIn {
    var signIn = SignIn()
    if isDemo {
      context.note(
        "warning: with --demo-auth everybody is who they claim to be and may send to all; for "
          + "demonstrations only")
      signIn.passwords = DemoUsers()
      signIn.everyoneSends = true
    } else {
      let path = store.userFile
      if store.$users.isGiven || FileManager.default.fileExists(atPath: path) {
        signIn.passwords = try users(path)
      }
    }
    signIn.bearer = try bearer()
    guard signIn.passwords != nil || signIn.bearer != nil else {
      throw UsageError(
        "no user could sign in: add users with `belfry backend user add NAME`, or give --issuer, "
          + "--audience and --jwks, or --demo-auth")
    }
    for name in operators {
      do {
        signIn.operators.insert(try UserName(reference: name, kinds: signIn.kinds))
      } catch {
        throw UsageError("--operator: \(error.description)")
      }
    }
    return signIn
  }

  private func users(_ path: String) throws -> UserFile {
    do { return try UserFile(path: path) } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
  }

  private func bearer() throws -> BearerConfiguration? {
    guard issuer != nil || audience != nil || jwks != nil else { return nil }
    guard let issuer, let audience, let jwks else {
      throw UsageError("--issuer, --audience and --jwks belong together")
    }
    var bearer = BearerConfiguration(
      issuer: issuer, audience: audience, keys: try source(of: jwks))
    bearer.userClaim = userClaim ?? bearer.userClaim
    bearer.clockSkew = Double(clockSkew)
    return bearer
  }

  private func source(of keys: String) throws -> IssuerKeySource {
    guard keys.contains("://") else {
      guard FileManager.default.isReadableFile(atPath: keys) else {
        throw UsageError("--jwks: \(keys) cannot be read")
      }
      return .file(keys)
    }
    guard let url = URL(string: keys), let host = url.host(),
      url.scheme == "https" || ["localhost", "127.0.0.1", "::1"].contains(host)
    else { throw UsageError("--jwks: '\(keys)' must be an https URL or a file") }
    return .url(url)
  }
}
